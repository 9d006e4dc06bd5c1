/** Who wrote each line of a file, in which turn. */
import { useCallback } from "react";

import { api, ApiError, dataOf } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Notice } from "../ui/Notice";
import { Origin } from "./Origin";

export function FileAuthors({ path }: { path: string }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/blame", { params: { query: { path } } })), [path]);
  const { data, failure } = useLoaded(ask);
  if (failure instanceof ApiError && failure.code === "not_found") return <Notice kind="info">{t("memory.authors.none")}</Notice>;
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data === null) return <p className="waiting">{t("app.loading")}</p>;
  return (
    <ol className="authors">
      {data.spans.map((span) => (
        <li key={span.first}>
          <Origin {...span} />
          <pre>{span.lines.map((line, index) => `${span.first + index}  ${line}`).join("\n")}</pre>
        </li>
      ))}
    </ol>
  );
}
