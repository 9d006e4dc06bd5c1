/** How much is left of each budget. A bar is green below 70 %, yellow from there on, and red from 90 % on. */
import { useLanguage } from "../i18n";
import { dollars } from "./money";
import type { Budget } from "./limits";

export function Budgets({ budgets }: { budgets: Budget[] }) {
  return (
    <ul className="cards">
      {budgets.map((budget) => (
        <li key={`${budget.measure}/${budget.block}`} className="card">
          <BudgetBar budget={budget} />
        </li>
      ))}
    </ul>
  );
}

function BudgetBar({ budget }: { budget: Budget }) {
  const { t, locale } = useLanguage();
  const { measure, used, limit, block, window: period, opens_at: end } = budget;
  const words = (value: number) => (measure === "spend" ? dollars(value, locale) : String(value));
  const label = t(block ? "activity.budget.used.block" : "activity.budget.used", { block, window: period, used: words(used), limit: words(limit) });
  const share = Math.min(used / limit, 1);
  return (
    <>
      <p>
        {label} <span className="dim">{t("activity.budget.left", { left: words(Math.max(limit - used, 0)), time: end ? new Date(end).toLocaleString(locale) : "?" })}</span>
      </p>
      <div className="budget" data-level={levelOf(share)} role="meter" aria-label={label} aria-valuenow={Math.round(100 * share)} aria-valuemin={0} aria-valuemax={100}>
        <span style={{ width: `${100 * share}%` }} />
      </div>
    </>
  );
}

function levelOf(share: number): "low" | "high" | "full" {
  if (share < 0.7) return "low";
  return share < 0.9 ? "high" : "full";
}
