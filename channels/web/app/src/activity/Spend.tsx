/** What requests to models cost, and the budgets that were used up. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Notice } from "../ui/Notice";
import { Limits } from "./Limits";
import { dollars } from "./money";

const GROUPS = ["day", "block", "model", "purpose", "conversation"] as const;
type Group = (typeof GROUPS)[number];
type Sum = Schemas["CostSum"];

export function Spend() {
  const t = useTexts();
  const [by, setBy] = useState<Group>("day");
  const ask = useCallback(() => dataOf(api.GET("/api/costs", { params: { query: { by } } })), [by]);
  const { data, failure } = useLoaded(ask);
  const isOwner = useMay("owner", { everywhere: true });
  return (
    <section aria-label={t("activity.spend")}>
      <h2>{t("activity.spend.days")}</h2>
      <label className="choice">
        {t("activity.spend.by")}
        <select value={by} onChange={(event) => setBy(event.target.value as Group)}>
          {GROUPS.map((one) => (
            <option key={one} value={one}>{t(`activity.spend.${one}`)}</option>
          ))}
        </select>
      </label>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data !== null && <Sums rows={data.rows} total={data.total} by={by} />}
      {data !== null && (data.unpriced ?? []).length > 0 && <Notice kind="info">{t("activity.spend.unpriced", { models: (data.unpriced ?? []).join(", ") })}</Notice>}
      {isOwner && <Limits />}
      <Breaches />
    </section>
  );
}

function Sums({ rows, total, by }: { rows: Sum[]; total: Sum; by: Group }) {
  const t = useTexts();
  const greatest = Math.max(...rows.map((row) => row.cost ?? 0), 1);
  return (
    <div className="table-frame">
      <table>
        <thead>
          <tr>
            <th scope="col">{t(`activity.spend.${by}`)}</th>
            <th scope="col">{t("activity.spend.cost")}</th>
            <th scope="col">{t("activity.spend.requests")}</th>
            <th scope="col">{t("activity.spend.tokens")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <SumRow key={row.key} row={row} name={row.key} share={(row.cost ?? 0) / greatest} />
          ))}
          <SumRow row={total} name={t("activity.spend.total")} share={0} />
        </tbody>
      </table>
    </div>
  );
}

function SumRow({ row, name, share }: { row: Sum; name: string; share: number }) {
  const { locale } = useLanguage();
  const { input_tokens: input = 0, output_tokens: output = 0 } = row.usage ?? {};
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        {dollars(row.cost ?? 0, locale)} <meter aria-hidden="true" value={share} />
      </td>
      <td>{row.requests ?? 0}</td>
      <td>{input} → {output}</td>
    </tr>
  );
}

/** The budgets that were used up, and who opened them again. */
function Breaches() {
  const { t, locale } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/budgets/history")), []);
  const { data, failure } = useLoaded(ask);
  return (
    <>
      <h2>{t("activity.breaches")}</h2>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.events.length === 0 && <p className="dim">{t("activity.breaches.none")}</p>}
      <ul className="cards">
        {data?.events.map((event) => (
          <li key={event.id} className="card">
            <time className="dim" dateTime={event.at}>{new Date(event.at).toLocaleString(locale)}</time> {breachText(t, locale, event)}
          </li>
        ))}
      </ul>
    </>
  );
}

function breachText(t: ReturnType<typeof useTexts>, locale: string, event: Schemas["BudgetItem"]): string {
  const words = (value: number) => (event.measure === "spend" ? dollars(value, locale) : String(value));
  const values = { block: event.block ?? "", window: event.window, used: words(event.used ?? 0), limit: words(event.limit ?? 0), by: event.by ?? "" };
  if (event.event === "reset") return t("activity.breaches.reset", values);
  return t(event.block ? "activity.budget.block" : "activity.budget", values);
}
