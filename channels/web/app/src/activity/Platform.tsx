/** The workers, queues and streams of the platform, and the models and keys that fail. */
import { useCallback, type ReactNode } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { usePolled } from "../api/usePolled";
import { useLanguage, useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Notice } from "../ui/Notice";

const EVERY_MS = 3000;

type State = Schemas["PlatformState"];

export function Platform() {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/overview")), []);
  const { data, failure } = usePolled(ask, EVERY_MS);
  return (
    <section aria-label={t("activity.platform")}>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data !== null && (
        <>
          <Lately state={data} />
          <Workers state={data} />
          <Queues state={data} />
          <Streams state={data} />
          <Failures state={data} />
        </>
      )}
    </section>
  );
}

function Lately({ state }: { state: State }) {
  const t = useTexts();
  const { minutes, started, finished, failed, parked } = state.lately;
  return (
    <>
      <p>{t("activity.lately", { minutes, started, finished, failed, parked, running: state.in_flight, waiting: state.waiting })}</p>
      {state.dead_letters > 0 && (
        <p><a href={addressOf("activity", "letters")}>{t("activity.letters.count", { count: state.dead_letters })}</a></p>
      )}
    </>
  );
}

function Workers({ state }: { state: State }) {
  const { t, locale } = useLanguage();
  const rows = state.workers.map((worker) => [
    worker.kind, `${worker.host} ${worker.pid}`, new Date(worker.started_at).toLocaleString(locale, { dateStyle: "short", timeStyle: "short" }),
    worker.restarts ?? 0, worker.trouble || t(worker.draining ? "activity.draining" : "activity.alive"), worker.unstored ?? 0,
  ]);
  const heads: TextKey[] = ["activity.worker", "activity.process", "activity.started", "activity.restarted", "activity.state", "activity.unstored"];
  return <Table title={t("activity.workers")} heads={heads} rows={rows} />;
}

function Queues({ state }: { state: State }) {
  const t = useTexts();
  const kinds = new Map(state.workers.map((worker) => [worker.id, `${worker.host} ${worker.pid}`]));
  const rows = state.partitions.map((one) => [
    one.partition, one.messages, one.conversations, one.claimed, one.oldest?.toFixed(1) ?? "", kinds.get(one.worker ?? "") ?? t("activity.nobody"),
  ]);
  const heads: TextKey[] = ["activity.partition", "activity.messages", "activity.conversations", "activity.claimed", "activity.oldest", "activity.process"];
  return <Table title={t("activity.queues")} heads={heads} rows={rows} />;
}

function Streams({ state }: { state: State }) {
  const t = useTexts();
  const rows = state.streams.map((one) => [one.name, one.messages, megabytes(one.bytes), one.max_bytes ? megabytes(one.max_bytes) : "–"]);
  return <Table title={t("activity.streams")} heads={["activity.stream", "activity.messages", "activity.size", "activity.limit"]} rows={rows} />;
}

/** Models and keys that are not used for a time, and why. Nothing is shown if there is none. */
function Failures({ state }: { state: State }) {
  const t = useTexts();
  const circuits = (state.circuits ?? []).map((one) => [one.model, one.failures, one.fault, one.open_until ?? ""]);
  const keys = (state.keys ?? []).map((one) => [`${one.adapter} ${one.key}`, one.requests, one.fault ?? "", one.rests_until ?? ""]);
  return (
    <>
      {circuits.length > 0 && <Table title={t("activity.circuits")} heads={["blocks.model", "activity.failures", "activity.why", "activity.until"]} rows={circuits} />}
      {keys.length > 0 && <Table title={t("activity.keys")} heads={["activity.key", "activity.spend.requests", "activity.why", "activity.until"]} rows={keys} />}
    </>
  );
}

function Table({ title, heads, rows }: { title: string; heads: TextKey[]; rows: ReactNode[][] }) {
  const t = useTexts();
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="table-frame" role="region" aria-label={title} tabIndex={0}>
      <h2>{title}</h2>
      <table>
        <thead>
          <tr>{heads.map((head) => <th key={head} scope="col">{t(head)}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{row.map((cell, at) => <td key={at}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
