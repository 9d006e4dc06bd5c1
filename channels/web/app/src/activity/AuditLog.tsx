/** The audit log: decisions, calls and changes of permissions, the newest first. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useLanguage } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

const PAGE = 50;
const DAY_MS = 86_400_000;
const DAYS = ["1", "7", "31"] as const;
const EVENTS = ["", "decision", "call", "approval", "permissions", "auth", "settings", "panic", "lost"] as const;
type Event = (typeof EVENTS)[number];

export function AuditLog() {
  const { t } = useLanguage();
  const [event, setEvent] = useState<Event>("");
  const [days, setDays] = useState("1");
  const [offset, setOffset] = useState(0);
  const ask = useCallback(() => {
    const since = new Date(Date.now() - Number(days) * DAY_MS + 60_000).toISOString(); // a minute less than the longest range
    const query = { limit: PAGE, offset, since, ...(event ? { event } : {}) };
    return dataOf(api.GET("/api/audit", { params: { query } }));
  }, [event, days, offset]);
  const { data, failure } = useLoaded(ask);
  const choose = (change: () => void) => {
    setOffset(0);
    change();
  };
  return (
    <section aria-label={t("activity.audit")}>
      <div className="card-row">
        <label className="choice">
          {t("activity.audit.event")}
          <select value={event} onChange={({ target }) => choose(() => setEvent(target.value as Event))}>
            {EVENTS.map((one) => <option key={one} value={one}>{one || t("activity.audit.all")}</option>)}
          </select>
        </label>
        <label className="choice">
          {t("activity.audit.days")}
          <select value={days} onChange={({ target }) => choose(() => setDays(target.value))}>
            {DAYS.map((one) => <option key={one}>{one}</option>)}
          </select>
        </label>
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.total === 0 && <p className="dim">{t("chat.noMatch")}</p>}
      <ul className="cards">
        {data?.entries.map((entry) => (
          <li key={entry.id} className="card"><Entry entry={entry} /></li>
        ))}
      </ul>
      <div className="choices">
        <Button disabled={offset === 0} onClick={() => setOffset(Math.max(offset - PAGE, 0))}>{t("activity.audit.newer")}</Button>
        <Button disabled={data === null || offset + PAGE >= data.total} onClick={() => setOffset(offset + PAGE)}>{t("activity.audit.older")}</Button>
      </div>
    </section>
  );
}

function Entry({ entry }: { entry: Schemas["AuditItem"] }) {
  const { t, locale } = useLanguage();
  const words = [entry.tool, entry.effect, entry.decision, entry.status, (entry.by ?? []).join(", ")].filter(Boolean).join(" · ");
  return (
    <>
      <p>
        <span className="badge">{entry.event}</span> {words}{" "}
        {entry.conversation && <a href={addressOf("chat", entry.conversation, entry.turn ?? "")}>{t("memory.turn")}</a>}
      </p>
      {entry.why && <p>{entry.why}</p>}
      <p className="dim">
        <time dateTime={entry.at}>{new Date(entry.at).toLocaleString(locale)}</time> · {entry.actor} · {t("approvals.of", { block: entry.block })}
      </p>
    </>
  );
}
