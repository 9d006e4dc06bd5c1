/** A block of code: its language, copy, and colours once the language is loaded. */
import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import { useEffect, useState, type ReactNode } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";

import { useTexts } from "../i18n";
import { CopyButton } from "../ui/CopyButton";
import { loadHighlighter, type Highlighter } from "./highlighter";

const LONGEST = 50_000;

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const t = useTexts();
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
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || t("markdown.code")}</span>
        <CopyButton text={code} label={t("chat.copy")} />
      </figcaption>
      {/* A region that scrolls must be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>
        <code>{coloured(code, highlighter)}</code>
      </pre>
    </figure>
  );
}

function coloured(code: string, highlighter: Highlighter | null): ReactNode {
  if (highlighter === null || code.length > LONGEST) return code;
  return toJsxRuntime(highlighter(code), { Fragment, jsx, jsxs }) as ReactNode;
}
