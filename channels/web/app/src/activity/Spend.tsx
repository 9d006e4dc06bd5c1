/** What requests to models cost, and the budgets that were used up. */
import { lazy, Suspense, useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { usePolled } from "../api/usePolled";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Notice } from "../ui/Notice";
import { Limits } from "./Limits";
import { loadLimits, type LimitsAndUse } from "./limits";
import { dollars, MILLION } from "./money";

const BarPlot = lazy(() => import("./BarPlot"));

const POLL_MS = 3000;
/** A limit that is further above all bars than this is named and not drawn: the bars would be too small to be seen. */
const HIGHEST_LINE = 4;

const GROUPS = ["day", "block", "model", "purpose", "conversation"] as const;
type Group = (typeof GROUPS)[number];
type Sum = Schemas["CostSum"];

export function Spend() {
  const t = useTexts();
  const [by, setBy] = useState<Group>("day");
  const ask = useCallback(() => dataOf(api.GET("/api/costs", { params: { query: { by } } })), [by]);
  const { data, failure } = useLoaded(ask);
  const isOwner = useMay("owner", { everywhere: true });
  const limits = usePolled(isOwner ? loadLimits : noLimits, POLL_MS);
  const daily = limits.data?.limits.find((limit) => limit.key === "max_daily_spend")?.value ?? null;
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
      {data !== null && data.rows.length > 0 && <Plot rows={data.rows} by={by} limit={by === "day" && daily !== null ? daily * MILLION : null} />}
      {data !== null && <Sums rows={data.rows} total={data.total} by={by} />}
      {data !== null && (data.unpriced ?? []).length > 0 && <Notice kind="info">{t("activity.spend.unpriced", { models: (data.unpriced ?? []).join(", ") })}</Notice>}
      {isOwner && <Limits known={limits.data} unread={limits.failure} onChanged={limits.refresh} />}
      <Breaches />
    </section>
  );
}

/** Without the owner's scope the gateway would refuse to name the limits. */
async function noLimits(): Promise<LimitsAndUse | null> {
  return Promise.resolve(null);
}

interface PlotProps {
  rows: Sum[];
  by: Group;
  /** The limit of each day in millionths of a US dollar. */
  limit: number | null;
}

/** The same figures as the table's, as bars. */
function Plot({ rows, by, limit }: PlotProps) {
  const { t, locale } = useLanguage();
  const bars = rows.map((row) => ({ key: row.key, name: nameOf(row.key, by, locale), value: row.cost ?? 0, figure: dollars(row.cost ?? 0, locale) }));
  const greatest = Math.max(...bars.map((bar) => bar.value));
  const isDrawn = limit !== null && (greatest === 0 || limit <= HIGHEST_LINE * greatest);
  const words = { limit: dollars(limit ?? 0, locale) };
  return (
    <Suspense fallback={null}>
      <BarPlot key={by} label={t("activity.spend.plot", { by: t(`activity.spend.${by}`) })} bars={bars} isUpright={by === "day"} limit={isDrawn ? limit : null} tick={(value) => dollars(value, locale, 2, 6)} />
      {limit !== null && <p className="dim">{isDrawn ? t("activity.spend.line", words) : t("activity.spend.above", words)}</p>}
    </Suspense>
  );
}

/** A day as the language writes it; any other key as it is. */
function nameOf(key: string, by: Group, locale: string): string {
  return by === "day" ? new Date(`${key}T00:00`).toLocaleDateString(locale, { day: "numeric", month: "short" }) : key;
}

function Sums({ rows, total, by }: { rows: Sum[]; total: Sum; by: Group }) {
  const { t, locale } = useLanguage();
  return (
    <div className="table-frame">
      <table className="spend">
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
            <SumRow key={row.key} row={row} name={nameOf(row.key, by, locale)} />
          ))}
          <SumRow row={total} name={t("activity.spend.total")} />
        </tbody>
      </table>
    </div>
  );
}

function SumRow({ row, name }: { row: Sum; name: string }) {
  const { locale } = useLanguage();
  const { input_tokens: input = 0, output_tokens: output = 0 } = row.usage ?? {};
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{dollars(row.cost ?? 0, locale)}</td>
      <td>{(row.requests ?? 0).toLocaleString(locale)}</td>
      <td>{input.toLocaleString(locale)} → {output.toLocaleString(locale)}</td>
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
