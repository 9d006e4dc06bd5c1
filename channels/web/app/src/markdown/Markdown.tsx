/** The text of an answer as Markdown. The text is not trusted: HTML is shown as text, links lead to http, https and mail
 * only, and a picture from elsewhere is a link until a person follows it. */
import { memo, useMemo, useState, type ComponentProps } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";

import { visible } from "../ui/visible";
import { MarkdownDivider, type ListPart, type MarkdownPart, type TablePart } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { Formula } from "./Formula";
import { piecesOf } from "./pieces";
import "../styles/markdown.css";

/** A single dollar is a price more often than a formula. */
const REMARK: Options["remarkPlugins"] = [remarkGfm, [remarkMath, { singleDollarTextMath: false }], () => showHtml];
const SCHEMA = { ...defaultSchema, attributes: { ...defaultSchema.attributes, code: [["className", /^language-./, "math-inline"]] } };
const REHYPE: Options["rehypePlugins"] = [[rehypeSanitize, SCHEMA]];

const COMPONENTS: Components = {
  a: Link,
  img: Picture,
  pre: ({ children }) => <>{children}</>,
  code: Code,
  table: ({ children }) => (
    <div className="table-frame">
      <table>{children}</table>
    </div>
  ),
};

/** The components of a piece of a table, whose frame is drawn around all pieces. */
const ROWS: Components = { ...COMPONENTS, table: ({ children }) => <>{children}</> };
/** The head is repeated before each piece, for the alignment of its columns, and shown once. */
const LATER_ROWS: Components = { ...ROWS, thead: () => null };
const ROWS_IN_PIECE = 10;

export default function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const [divider] = useState(() => new MarkdownDivider());
  const parts = useMemo(() => divider.divide(visible(text), isGrowing), [divider, text, isGrowing]);
  return (
    <div className="markdown">
      {parts.map((part, index) => (
        <Part key={index} part={part} isGrowing={isGrowing && index === parts.length - 1} />
      ))}
    </div>
  );
}

function Part({ part, isGrowing }: { part: MarkdownPart; isGrowing: boolean }) {
  if (part.kind === "list") return <List list={part} />;
  if (part.kind === "table") return <Table table={part} />;
  if (part.kind === "code") return <CodeBlock code={part.text} language={part.language} isGrowing={isGrowing} />;
  return <Block text={part.text} />;
}

function Table({ table }: { table: TablePart }) {
  const pieces = table.rows.length > 0 ? piecesOf(table.rows, ROWS_IN_PIECE) : [[]];
  return (
    <div className="table-frame">
      <table>
        {pieces.map((rows, index) => (
          <Block key={index} text={[table.head, ...rows].join("\n")} components={index === 0 ? ROWS : LATER_ROWS} />
        ))}
      </table>
    </div>
  );
}

function List({ list }: { list: ListPart }) {
  const items = list.items.map((item, index) => <Item key={index} text={item} />);
  const kind = list.isTight ? "tight" : undefined;
  return list.isOrdered ? <ol start={list.start} className={kind}>{items}</ol> : <ul className={kind}>{items}</ul>;
}

const Item = memo(function Item({ text }: { text: string }) {
  return (
    <li>
      <Block text={text} />
    </li>
  );
});

const Block = memo(function Block({ text, components = COMPONENTS }: { text: string; components?: Components }) {
  return (
    <ReactMarkdown remarkPlugins={REMARK} rehypePlugins={REHYPE} components={components}>
      {text}
    </ReactMarkdown>
  );
});

interface SyntaxNode {
  type: string;
  children?: SyntaxNode[];
}

/** Turn HTML into text, so that a reader sees what was written instead of nothing. */
function showHtml(node: SyntaxNode): void {
  if (node.type === "html") node.type = "text";
  node.children?.forEach(showHtml);
}

function Link({ href, children }: ComponentProps<"a">) {
  if (!href || !/^(https?:|mailto:|#)/i.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  );
}

function Picture({ src, alt }: ComponentProps<"img">) {
  if (typeof src !== "string") return <span>{alt}</span>;
  return src.startsWith("data:image/") ? <img src={src} alt={alt ?? ""} /> : <Link href={src}>{alt ? `🖼 ${alt}` : src}</Link>;
}

function Code({ className, children }: ComponentProps<"code">) {
  const text = typeof children === "string" ? children : "";
  const language = /language-([\w+#-]+)/.exec(className ?? "")?.[1];
  if (language === "math") return <Formula tex={text} isDisplayed={!className?.includes("math-inline")} />;
  if (language === undefined && !text.includes("\n")) return <code>{children}</code>;
  return <CodeBlock code={text.replace(/\n$/, "")} language={language ?? ""} isGrowing={false} />;
}
