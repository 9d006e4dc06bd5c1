/** What a call would do: a diff with its lines marked, or the text as it is. Never as Markdown: it may be hostile. */
import type { Schemas } from "../api/client";
import { useTexts } from "../i18n";

export function Effect({ detail }: { detail: Pick<Schemas["ApprovalDetail"], "kind" | "text" | "left_out"> }) {
  const t = useTexts();
  const text = detail.text ?? "";
  return (
    <>
      <pre className="effect">
        {detail.kind === "diff" ? text.split("\n").map((line, index) => <Line key={index} line={line} />) : text}
      </pre>
      {(detail.left_out ?? 0) > 0 && <p className="dim">{t("approval.leftOut", { count: detail.left_out ?? 0 })}</p>}
    </>
  );
}

function Line({ line }: { line: string }) {
  const isHead = line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@");
  const kind = isHead ? "head" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
  return <span className={`diff-${kind}`}>{`${line}\n`}</span>;
}
