/** The texts of the interface by language. A language is one file with the keys of English; the registry is below. */
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";

import { load, save } from "../storage";
import { de } from "./de";
import { en } from "./en";

export type Texts = Record<keyof typeof en, string>;
export type TextKey = keyof typeof en;
export type Translate = (key: TextKey, values?: Record<string, string | number>) => string;

export const LANGUAGES: Record<string, { name: string; texts: Texts }> = {
  en: { name: "English", texts: en },
  de: { name: "Deutsch", texts: de },
};

interface Language {
  language: string;
  /** The locale of dates and numbers: the browser's, if it has the same language. */
  locale: string;
  choose: (language: string) => void;
  t: Translate;
}

const LanguageContext = createContext<Language | null>(null);

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(preferred);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const value = useMemo<Language>(() => {
    const texts = LANGUAGES[language]?.texts ?? en;
    return {
      language,
      locale: navigator.languages.find((one) => one.startsWith(language)) ?? language,
      choose(chosen) {
        save("language", chosen);
        setLanguage(chosen);
      },
      t: (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? "")),
    };
  }, [language]);
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

function preferred(): string {
  const wanted = [load("language", ""), ...navigator.languages.map((one) => one.slice(0, 2))];
  return wanted.find((one) => one in LANGUAGES) ?? "en";
}
