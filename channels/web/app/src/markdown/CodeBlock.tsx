/** A block of code: its language, copy, and colours once the language is loaded. Its lines are drawn in pieces. While it
 * grows, each piece is coloured on its own, so that only the last is coloured again; what goes beyond a piece, such as a
 * long comment, has its colours when the block is complete. */
import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import { memo, useDeferredValue, useEffect, useMemo, useState, type ReactNode } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";

import { useTexts } from "../i18n";
import { CopyButton } from "../ui/CopyButton";
import { loadHighlighter, type Highlighter } from "./highlighter";
import { linesOf, piecesOf, treeLinesOf, type CodeNode } from "./pieces";

const LONGEST = 50_000;
const LINES_IN_PIECE = 20;

interface Props {
  code: string;
  language: string;
  isGrowing: boolean;
}

export function CodeBlock({ code, language, isGrowing }: Props) {
  const t = useTexts();
  const highlighter = useHighlighter(language);
  const isComplete = !useDeferredValue(isGrowing); // the colours of a long block are not worth a halt
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || t("markdown.code")}</span>
        <CopyButton text={code} label={t("chat.copy")} />
      </figcaption>
      {/* A region that scrolls must be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>
        <code>
          <Pieces code={code} highlighter={code.length > LONGEST ? null : highlighter} isComplete={isComplete} />
        </code>
      </pre>
    </figure>
  );
}

function useHighlighter(language: string): Highlighter | null {
  const [highlighter, setHighlighter] = useState<Highlighter | null>(null);
  useEffect(() => {
    let isWanted = true;
    void loadHighlighter(language).then((found) => {
      if (isWanted) setHighlighter(() => found);
    });
    return () => {
      isWanted = false;
    };
  }, [language]);
  return highlighter;
}

function Pieces({ code, highlighter, isComplete }: { code: string; highlighter: Highlighter | null; isComplete: boolean }) {
  const trees = useMemo(
    () => (isComplete && highlighter !== null ? piecesOf(treeLinesOf(highlighter(code).children), LINES_IN_PIECE) : []),
    [code, highlighter, isComplete],
  );
  return piecesOf(linesOf(code), LINES_IN_PIECE).map((lines, index) => (
    <Piece key={index} code={lines.join("")} highlighter={highlighter} lines={trees[index]} />
  ));
}

interface PieceProps {
  code: string;
  highlighter: Highlighter | null;
  /** The lines with the colours of the whole block, once they are known. */
  lines: CodeNode[][] | undefined;
}

const Piece = memo(function Piece({ code, highlighter, lines }: PieceProps) {
  return <span className="code-piece">{highlighter === null ? code : drawn(lines ?? treeLinesOf(highlighter(code).children))}</span>;
});

function drawn(lines: CodeNode[][]): ReactNode {
  return toJsxRuntime({ type: "root", children: lines.flat() }, { Fragment, jsx, jsxs }) as ReactNode;
}
