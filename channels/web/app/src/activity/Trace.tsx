/** The waterfall of a turn: what each worker did when, from the platform's own spans. */
import { useCallback } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

type Span = Schemas["TraceSpan"];

export function Trace({ turn }: { turn: string }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/turns/{id}/trace", { params: { path: { id: turn } } })), [turn]);
  const { data, failure, reload } = useLoaded(ask);
  const end = Math.max(...(data?.spans ?? []).map((span) => span.start + span.seconds), 0.001);
  return (
    <section aria-label={t("activity.trace")}>
      <div className="card-row">
        <h2>{t("activity.trace.of", { turn })}</h2>
        <Button onClick={reload}>{t("activity.again")}</Button>
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.spans.length === 0 && <p className="dim">{t("activity.trace.none")}</p>}
      <ol className="trace">
        {data?.spans.map((span) => (
          <li key={span.id} className={span.status === "error" ? "trace-error" : undefined}>
            <Row span={span} end={end} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Row({ span, end }: { span: Span; end: number }) {
  const t = useTexts();
  const at = { marginLeft: `${(100 * span.start) / end}%`, width: `${Math.max((100 * span.seconds) / end, 0.4)}%` };
  return (
    <>
      <span className="trace-title" style={{ paddingLeft: `${span.depth}rem` }}>
        {span.title} <span className="dim">{span.worker}</span>
      </span>
      <span className="trace-track" aria-hidden="true">
        <span className="trace-bar" style={at} />
      </span>
      <span className="dim trace-time">
        {t("activity.trace.time", { start: span.start.toFixed(3), seconds: span.seconds.toFixed(3) })}
        {span.unfinished && ` ${t("activity.trace.unfinished")}`} {span.notes}
      </span>
    </>
  );
}
