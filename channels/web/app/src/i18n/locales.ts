/** The languages besides English, which is part of the app. The gateway has them: those of the app and of plugins. */
import { api, dataOf, type Schemas } from "../api/client";
import { load, save } from "../storage";
import { en } from "./en";

/** A language. A text that is missing is shown in English. */
export interface Locale {
  tag: string;
  version: string;
  texts: Partial<Record<string, string>>;
}

export const ENGLISH: Locale = { tag: "en", version: "", texts: en };

const KEPT = "locale";

/** The languages by their tags. */
export async function listLocales(): Promise<Schemas["LocaleItem"][]> {
  return (await dataOf(api.GET("/api/locales"))).locales;
}

/** The language of the last visit, so that a page need not begin in English. */
export function keptLocale(): Locale {
  const kept = load<Locale | null>(KEPT, null);
  return kept !== null && [kept.tag, ""].includes(load("language", "")) ? kept : ENGLISH;
}

/** The texts of a language, from the last visit if they are the same. */
export async function loadLocale({ tag, version }: Pick<Locale, "tag" | "version">): Promise<Locale> {
  if (tag === ENGLISH.tag) {
    save(KEPT, null);
    return ENGLISH;
  }
  const kept = load<Locale | null>(KEPT, null);
  if (kept?.tag === tag && kept.version === version) return kept;
  const locale = await dataOf(api.GET("/api/locales/{tag}", { params: { path: { tag } } }));
  save(KEPT, locale);
  return locale;
}

/** The first wanted language that there is, without its region if need be: for `de-AT` also `de`. */
export function bestOf<T extends { tag: string }>(wanted: readonly string[], offered: readonly T[]): T | undefined {
  for (const one of wanted) {
    for (let parts = one.toLowerCase().split("-"); parts.length > 0; parts = parts.slice(0, -1)) {
      const found = offered.find(({ tag }) => tag.toLowerCase() === parts.join("-"));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
