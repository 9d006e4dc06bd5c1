/** The texts of the interface in the language that the person chose, or that the browser prefers. */
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";

import type { Schemas } from "../api/client";
import { load, save } from "../storage";
import { en } from "./en";
import { bestOf, ENGLISH, keptLocale, listLocales, loadLocale } from "./locales";

export type Texts = Record<keyof typeof en, string>;
export type TextKey = keyof typeof en;
export type Translate = (key: TextKey, values?: Record<string, string | number>) => string;

interface Language {
  language: string;
  /** The languages that can be chosen; none before the gateway has named them. */
  languages: { tag: string; name: string }[];
  /** The locale of dates and numbers: the browser's, if it has the same language. */
  locale: string;
  choose: (language: string) => void;
  t: Translate;
}

const LanguageContext = createContext<Language | null>(null);

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [languages, setLanguages] = useState<Schemas["LocaleItem"][]>([]);
  const [chosen, setChosen] = useState(() => load("language", ""));
  const [shown, setShown] = useState(keptLocale);
  useEffect(() => {
    listLocales().then(setLanguages, () => undefined); // without a network the language of the last visit stays
  }, []);
  useEffect(() => {
    if (languages.length === 0) return;
    let isWanted = true;
    const best = bestOf([chosen, ...navigator.languages], languages) ?? ENGLISH;
    loadLocale(best).then((locale) => { if (isWanted) setShown(locale); }, () => undefined);
    return () => {
      isWanted = false;
    };
  }, [chosen, languages]);
  useEffect(() => {
    document.documentElement.lang = shown.tag;
  }, [shown]);
  const value = useMemo<Language>(() => ({
    language: shown.tag,
    languages,
    locale: navigator.languages.find((one) => one.startsWith(shown.tag)) ?? shown.tag,
    choose(tag) {
      save("language", tag);
      setChosen(tag);
    },
    t: (key, values = {}) => (shown.texts[key] ?? en[key]).replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? "")),
  }), [shown, languages]);
  return <LanguageContext value={value}>{children}</LanguageContext>;
}

export function useLanguage(): Language {
  const found = useContext(LanguageContext);
  if (found === null) throw new Error("useLanguage is used outside of LanguageProvider");
  return found;
}

/** The texts in the chosen language. */
export function useTexts(): Translate {
  return useLanguage().t;
}
