/** The highlighter, with the grammars of the languages that are used. Each is loaded when it is first needed. */
import type { LanguageFn } from "highlight.js";
import { createLowlight } from "lowlight";

export type Highlighter = (code: string) => ReturnType<Lowlight["highlight"]>;
type Lowlight = ReturnType<typeof createLowlight>;

const GRAMMARS: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  json: () => import("highlight.js/lib/languages/json"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const ALIASES: Record<string, string> = {
  console: "bash", html: "xml", js: "typescript", javascript: "typescript", jsx: "typescript", md: "markdown", py: "python",
  rs: "rust", sh: "bash", shell: "bash", svg: "xml", toml: "ini", ts: "typescript", tsx: "typescript", yml: "yaml",
};

const lowlight = createLowlight();

/** The highlighter of a language; null if its grammar is not known or cannot be loaded. */
export async function loadHighlighter(name: string): Promise<Highlighter | null> {
  const language = ALIASES[name.toLowerCase()] ?? name.toLowerCase();
  const load = GRAMMARS[language];
  if (load === undefined) return null;
  try {
    if (!lowlight.registered(language)) lowlight.register(language, (await load()).default);
  } catch {
    return null;
  }
  return (code) => lowlight.highlight(language, code);
}
