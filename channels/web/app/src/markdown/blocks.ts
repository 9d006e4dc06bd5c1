/** Divides Markdown into parts that are rendered on their own, so that only the part that grows is rendered again: the
 * top-level blocks, the items of a list, and the rows of a table. */
import { Marked, type Token, type Tokens } from "marked";
import remend from "remend";

export type MarkdownPart = { kind: "block"; text: string } | CodePart | ListPart | TablePart;

/** Code between fences. */
export interface CodePart {
  kind: "code";
  language: string;
  text: string;
}

export interface TablePart {
  kind: "table";
  /** The head, and the line below it with the alignment of the columns. */
  head: string;
  rows: string[];
}

export interface ListPart {
  kind: "list";
  isOrdered: boolean;
  /** The sign before its items, such as `-`, or behind their numbers. Another sign begins another list. */
  mark: string;
  start: number;
  /** A tight list has no paragraphs in its items. */
  isTight: boolean;
  items: string[];
}

/** Formulas between lines of `$$`, or in `\[ \]`. Without this their lines may look like a list. */
const FORMULA = /^ {0,3}(?:\$\$[^$][\s\S]*?\$\$|\\\[[\s\S]+?\\\])[ \t]*(?:\n+|$)/;

const marked = new Marked({
  gfm: true,
  extensions: [
    {
      name: "formula",
      level: "block",
      start: (text) => /(?:^|\n) {0,3}(?:\$\$|\\\[)/.exec(text)?.index,
      tokenizer(text): Tokens.Generic | undefined {
        const found = FORMULA.exec(text);
        return found === null ? undefined : { type: "formula", raw: found[0] };
      },
    },
  ],
});

/** The last items of a list, and the last blocks, may still change. */
const OPEN = 2;

/** Divides a text that grows. What more text cannot change is not read again. */
export class MarkdownDivider {
  private before = "";
  private settled: MarkdownPart[] = [];

  divide(text: string, isGrowing: boolean): MarkdownPart[] {
    if (!isGrowing) return partsOf(tokensOf(text));
    if (!text.startsWith(this.before)) [this.before, this.settled] = ["", []];
    const rest = text.slice(this.before.length);
    const tokens = tokensOf(remend(rest)); // closes what is open, such as **bold, until the rest arrives
    const parts = joined(this.settled, partsOf(tokens));
    const settled = settledTokens(tokens);
    const read = settled.map((token) => token.raw).join("");
    if (rest.startsWith(read)) {
      this.before += read;
      this.settled = joined(this.settled, partsOf(settled));
    }
    return parts;
  }
}

function partsOf(tokens: Token[]): MarkdownPart[] {
  return tokens.filter((token) => token.type !== "space").map(partOf);
}

function tokensOf(text: string): Token[] {
  return new marked.Lexer(marked.defaults).blockTokens(text, []);
}

/** The tokens that more text does not change. Of a list at the end, these are all items but the last. */
function settledTokens(tokens: Token[]): Token[] {
  const last = tokens.at(-1);
  if (last?.type !== "list") return tokens.slice(0, -OPEN);
  const list = last as Tokens.List;
  const items = list.items.slice(0, -OPEN);
  if (items.length === 0) return tokens.slice(0, -1);
  return [...tokens.slice(0, -1), { ...list, items, raw: items.map((item) => item.raw).join("") }];
}

/** A list that goes on is one list. */
function joined(settled: MarkdownPart[], added: MarkdownPart[]): MarkdownPart[] {
  const [last, first] = [settled.at(-1), added[0]];
  if (last?.kind !== "list" || first?.kind !== "list" || last.mark !== first.mark) return [...settled, ...added];
  const whole = { ...last, isTight: last.isTight && first.isTight, items: [...last.items, ...first.items] };
  return [...settled.slice(0, -1), whole, ...added.slice(1)];
}

function partOf(token: Token): MarkdownPart {
  if (token.type === "list") return listOf(token as Tokens.List);
  if (token.type === "table") return tableOf(withDollars(token.raw));
  if (token.type === "code") return codeOf(token as Tokens.Code);
  return { kind: "block", text: withDollars(token.raw) };
}

/** Indented code, and formulas in a fence, are blocks. */
function codeOf({ raw, text, lang }: Tokens.Code): MarkdownPart {
  const language = /^[\w+#-]*/.exec(lang ?? "")?.[0] ?? "";
  const isFenced = /^ {0,3}(?:`{3}|~{3})/.test(raw);
  return isFenced && language !== "math" ? { kind: "code", language, text } : { kind: "block", text: raw };
}

function tableOf(text: string): TablePart {
  const lines = text.trimEnd().split("\n");
  return { kind: "table", head: lines.slice(0, 2).join("\n"), rows: lines.slice(2) };
}

function listOf(list: Tokens.List): ListPart {
  return {
    kind: "list",
    isOrdered: list.ordered,
    mark: /[-*+.)]/.exec(list.raw)?.[0] ?? "",
    start: Number(list.start) || 1,
    isTight: !list.loose,
    items: list.items.map((item) => `${taskOf(item)}${withDollars(item.text)}`),
  };
}

/** The mark of a task, which the lexer takes off the text. */
function taskOf(item: Tokens.ListItem): string {
  return item.task ? `${item.checked ? "☑" : "☐"} ` : "";
}

/** Formulas in `\( \)` and `\[ \]` between dollars, where the parser knows them. Code is left as it is. */
function withDollars(text: string): string {
  return text.replace(/(`+)[\s\S]*?\1|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)/g, (all, code?: string, lines?: string, inline?: string) => {
    if (code !== undefined) return all;
    const isBlock = lines !== undefined && all === text.trim();
    return isBlock ? `$$\n${lines.trim()}\n$$` : `$$${(lines ?? inline ?? "").trim()}$$`;
  });
}
