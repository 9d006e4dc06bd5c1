/** The state that agents keep: conversations, what was remembered, what was paid, and a search over all of it. */
import { useCallback, type ReactNode } from "react";

import { api, dataOf } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useLanguage } from "../i18n";
import { sentence } from "../i18n/errors";
import { MemorySearch } from "../memory/MemorySearch";
import { Origin } from "../memory/Origin";
import { REMEMBERED } from "../memory/addresses";
import { addressOf } from "../router";
import { Notice } from "../ui/Notice";
import { dollars } from "./money";

const SHOWN = 10;

export function Inspector() {
  const { t } = useLanguage();
  return (
    <section aria-label={t("activity.state")}>
      <h2>{t("memory.search")}</h2>
      <MemorySearch />
      <Conversations />
      <Facts />
      <Ledger />
    </section>
  );
}

function Conversations() {
  const { t, locale } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/conversations", { params: { query: { limit: SHOWN } } })), []);
  const { data, failure } = useLoaded(ask);
  return (
    <Part title={t("activity.conversations")} count={data?.total} failure={failure} all={addressOf("chat")}>
      {data?.conversations.map((one) => (
        <li key={one.id} className="card">
          <a href={addressOf("chat", one.id)}>{one.title || one.id}</a>{" "}
          <span className="dim">{t("activity.state.messages", { count: one.message_count })}, <time dateTime={one.updated_at}>{new Date(one.updated_at).toLocaleString(locale)}</time></span>
        </li>
      ))}
    </Part>
  );
}

function Facts() {
  const { t } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/chunks", { params: { query: { limit: SHOWN } } })), []);
  const { data, failure } = useLoaded(ask);
  return (
    <Part title={t("memory.chunks")} count={data?.total} failure={failure} all={addressOf("memory", REMEMBERED)}>
      {data?.chunks.map(({ id, content, type, metadata }) => (
        <li key={id} className="card">
          <p className="hit">{content} <span className="badge">{type}</span></p>
          <Origin author={metadata.actor ?? metadata.source ?? ""} timestamp={metadata.created_at} conversation={metadata.conversation_id ?? null} turn={metadata.turn_id ?? null} />
        </li>
      ))}
    </Part>
  );
}

/** What each conversation cost in the last 30 days. */
function Ledger() {
  const { t, locale } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/costs", { params: { query: { by: "conversation" } } })), []);
  const { data, failure } = useLoaded(ask);
  return (
    <Part title={t("activity.state.ledger")} count={data?.total.requests} failure={failure} all={addressOf("activity", "spend")}>
      {data?.rows.slice(0, SHOWN).map(({ key, cost, requests, usage }) => (
        <li key={key} className="card card-row">
          <a href={addressOf("chat", key)}>{key}</a>
          <span>{dollars(cost ?? 0, locale)} <span className="dim">{t("activity.state.requests", { count: requests ?? 0, input: usage?.input_tokens ?? 0, output: usage?.output_tokens ?? 0 })}</span></span>
        </li>
      ))}
    </Part>
  );
}

interface PartProps {
  title: string;
  count: number | undefined;
  failure: unknown;
  /** The address of the page with all of them. */
  all: string;
  children: ReactNode;
}

function Part({ title, count, failure, all, children }: PartProps) {
  const { t } = useLanguage();
  return (
    <>
      <h2><a href={all}>{title}</a> {count !== undefined && <span className="badge">{count}</span>}</h2>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <ul className="cards">{children}</ul>
    </>
  );
}
