/** Divides Markdown into parts that are rendered on their own, so that only the part that grows is rendered again: the
 * top-level blocks, and the items of a list. */
import { Marked, type Token, type Tokens } from "marked";
import remend from "remend";

export type MarkdownPart = { kind: "block"; text: string } | ListPart;

export interface ListPart {
  kind: "list";
  isOrdered: boolean;
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

export function partsOf(text: string, isGrowing: boolean): MarkdownPart[] {
  const whole = isGrowing ? remend(text) : text; // closes what is open, such as **bold, until the rest arrives
  return new marked.Lexer(marked.defaults).blockTokens(whole, []).filter((token) => token.type !== "space").map(partOf);
}

function partOf(token: Token): MarkdownPart {
  if (token.type !== "list") return { kind: "block", text: token.type === "code" ? token.raw : withDollars(token.raw) };
  const list = token as Tokens.List;
  return {
    kind: "list",
    isOrdered: list.ordered,
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
