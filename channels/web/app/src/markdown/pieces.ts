/** Divides what grows at its end into pieces of equal size: all but the last stay as they are. */
import type { Highlighter } from "./highlighter";

/** Coloured code, and what it consists of. */
export type CodeTree = ReturnType<Highlighter>;
export type CodeNode = CodeTree["children"][number];
type ElementContent = Extract<CodeNode, { type: "element" }>["children"][number];

/** At most `size` of the entries in each piece. */
export function piecesOf<T>(entries: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(entries.length / size) }, (_, index) => entries.slice(index * size, (index + 1) * size));
}

/** The lines of a text, each with its end. */
export function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** The lines of coloured code. An element over several lines becomes one in each of them. */
export function treeLinesOf(nodes: CodeNode[]): CodeNode[][] {
  const lines: CodeNode[][] = [[]];
  for (const node of nodes) {
    const last = lines.at(-1)?.at(-1);
    if (last !== undefined && endsLine(last)) lines.push([]);
    const [first, ...others] = partsOf(node);
    if (first !== undefined) lines.at(-1)?.push(first);
    lines.push(...others.map((part) => [part]));
  }
  return lines;
}

/** The node, once for each of its lines. */
function partsOf(node: CodeNode): CodeNode[] {
  if (node.type === "text") return linesOf(node.value).map((value) => ({ ...node, value }));
  if (node.type !== "element") return [node];
  return treeLinesOf(node.children).map((line) => ({ ...node, children: line as ElementContent[] }));
}

function endsLine(node: CodeNode): boolean {
  if (node.type === "text") return node.value.endsWith("\n");
  const last = node.type === "element" ? node.children.at(-1) : undefined;
  return last !== undefined && endsLine(last);
}
