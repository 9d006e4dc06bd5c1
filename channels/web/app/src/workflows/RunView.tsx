/** A run: its steps with their states, the question that waits for a person, its calls, and the way to end it. */
import { useCallback, useState } from "react";

import { api, dataOf } from "../api/client";
import { usePolled } from "../api/usePolled";
import { ApprovalQuestion } from "../approvals/ApprovalQuestion";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { StepList } from "./StepList";
import { hasEnded, loadRun, type LogLine, type RunDetail } from "./workflows";

const EVERY_MS = 2000;

export function RunView({ block, run: id }: { block: string; run: string }) {
  const { t, locale } = useLanguage();
  const ask = useCallback(() => loadRun(block, id), [block, id]);
  const { data: run, failure, refresh } = usePolled(ask, EVERY_MS);
  return (
    <section aria-label={t("workflows.run.of", { run: id })}>
      <p><a href={addressOf("workflows", block)}>← {t("workflows.back", { block })}</a></p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {run === null && failure === null && <p className="waiting">{t("app.loading")}</p>}
      {run !== null && (
        <>
          <h2>
            {run.workflow} <span className={`badge ${run.status === "failed" ? "badge-ERROR" : ""}`}>{t(`workflows.status.${run.status}`)}</span>
          </h2>
          <p className="dim">
            {run.run} · <time dateTime={run.started_at}>{new Date(run.started_at).toLocaleString(locale)}</time>{" "}
            {run.conversation && <>· <a href={addressOf("chat", run.conversation)}>{t("schedules.conversation")}</a> </>}
            {run.turn && <>· <a href={addressOf("activity", "trace", run.turn)}>{t("activity.trace")}</a></>}
          </p>
          {run.detail && <p className="notice notice-error">{visible(run.detail)}</p>}
          {run.is_edited && !hasEnded(run.status) && <Notice kind="info">{t("workflows.edited", { run: run.run })}</Notice>}
          {run.status === "waiting_approval" && <Questions turn={run.turn} onDecided={refresh} />}
          {!hasEnded(run.status) && run.turn && <Cancel run={run} onCancelled={refresh} />}
          <StepList steps={run.steps} states={run.states} />
          <Log lines={run.log} />
        </>
      )}
    </section>
  );
}

function Questions({ turn, onDecided }: { turn: string; onDecided: () => void }) {
  const ask = useCallback(() => dataOf(api.GET("/api/approvals")), []);
  const { data, refresh } = usePolled(ask, EVERY_MS);
  const open = (data?.approvals ?? []).filter((one) => one.turn === turn && !one.settled);
  const decided = () => {
    refresh();
    onDecided();
  };
  return open.map((one) => <ApprovalQuestion key={one.id} turn={one.turn} call={one.call} hash={one.hash} question={one.question} detail={one.detail} expiresAt={one.expires_at} onDecided={decided} />);
}

function Cancel({ run, onCancelled }: { run: RunDetail; onCancelled: () => void }) {
  const t = useTexts();
  const mayChat = useMay("chat");
  const [isAsked, setAsked] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const cancel = () => {
    setFailure(null);
    dataOf(api.POST("/api/turns/{id}/cancel", { params: { path: { id: run.turn } }, body: {} })).then(onCancelled, setFailure);
  };
  if (!mayChat) return null;
  return (
    <>
      <div className="choices"><Button kind="danger" onClick={() => setAsked(true)}>{t("workflows.cancel")}</Button></div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isAsked && (
        <Dialog title={t("workflows.cancel.title", { run: run.run })} submit={t("workflows.cancel")} isDangerous onClose={() => setAsked(false)} onSubmit={cancel}>
          <p>{t("workflows.cancel.means")}</p>
        </Dialog>
      )}
    </>
  );
}

function Log({ lines }: { lines: LogLine[] }) {
  const t = useTexts();
  if (lines.length === 0) return null;
  return (
    <details>
      <summary>{t("workflows.log", { count: lines.length })}</summary>
      <ol className="cards">
        {lines.map((line) => (
          <li key={line.call} className="card">
            <p><code>{line.step}</code> · <code>{visible(line.tool)}</code> <span className="badge">{line.outcome}</span> {line.by && <span className="dim">{t("workflows.by", { by: line.by })}</span>}</p>
            {line.result && <pre className="effect">{visible(line.result)}</pre>}
          </li>
        ))}
      </ol>
    </details>
  );
}
