/** The workflows of a block with their runs, or one run. The address names the block, and the run. */
import { useCallback, useId } from "react";

import { api, dataOf } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { usePolled } from "../api/usePolled";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf, goTo } from "../router";
import "../styles/pages.css";
import "../styles/workflows.css";
import { Notice } from "../ui/Notice";
import { RunView } from "./RunView";
import { WorkflowCard } from "./WorkflowCard";
import { loadRuns, loadWorkflows, type Run } from "./workflows";

const EVERY_MS = 5000;

export default function WorkflowsPage({ name, part }: { name: string; part: string }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/blocks")), []);
  const { data, failure } = useLoaded(ask);
  const block = name || data?.blocks[0]?.name || "";
  return (
    <div className="page">
      <h1>{t("nav.workflows")}</h1>
      <p className="dim">{t("workflows.how")}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {part ? (
        <RunView key={part} block={block} run={part} />
      ) : (
        <>
          {(data?.blocks.length ?? 0) > 1 && <Block block={block} names={data?.blocks.map((one) => one.name) ?? []} />}
          {block && <BlockWorkflows key={block} block={block} />}
        </>
      )}
    </div>
  );
}

function Block({ block, names }: { block: string; names: string[] }) {
  const t = useTexts();
  const id = useId();
  return (
    <p className="workflow-block">
      <label htmlFor={id}>{t("chat.block")}</label>
      <select id={id} value={block} onChange={(event) => goTo("workflows", event.target.value)}>
        {names.map((name) => <option key={name}>{name}</option>)}
      </select>
    </p>
  );
}

function BlockWorkflows({ block }: { block: string }) {
  const t = useTexts();
  const ask = useCallback(async () => {
    const found = await loadWorkflows(block);
    return { found, runs: found === null ? [] : (await loadRuns(block)).runs };
  }, [block]);
  const { data, failure, refresh } = usePolled(ask, EVERY_MS);
  if (data === null) return failure === null ? <p className="waiting">{t("app.loading")}</p> : <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data.found === null) return <p>{t("workflows.none.plugin")}</p>;
  return (
    <>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data.found.workflows.length + data.found.proposals.length === 0 && <p>{t("workflows.none")}</p>}
      <ul className="cards">
        {data.found.proposals.map((one) => <WorkflowCard key={`proposal ${one.name}`} block={block} workflow={one} isProposed onChanged={refresh} />)}
        {data.found.workflows.map((one) => <WorkflowCard key={one.name} block={block} workflow={one} onChanged={refresh} />)}
      </ul>
      <section aria-label={t("workflows.runs")}>
        <h2>{t("workflows.runs")}</h2>
        {data.runs.length === 0 && <p className="dim">{t("workflows.runs.none")}</p>}
        <ul className="cards">
          {data.runs.map((run) => <li key={run.run} className="card card-row"><RunLine block={block} run={run} /></li>)}
        </ul>
      </section>
    </>
  );
}

function RunLine({ block, run }: { block: string; run: Run }) {
  const { t, locale } = useLanguage();
  return (
    <span>
      <a href={addressOf("workflows", block, run.run)}>{run.workflow}</a>{" "}
      <span className={`badge ${run.status === "failed" ? "badge-ERROR" : ""}`}>{t(`workflows.status.${run.status}`)}</span>{" "}
      {run.step && <code>{run.step}</code>}{" "}
      <time className="dim" dateTime={run.started_at}>{new Date(run.started_at).toLocaleString(locale)}</time>
    </span>
  );
}
