/** What happens now: the turns that run, the workers, and budgets that are used up. */
import { useState } from "react";

import { api, dataOf } from "../api/client";
import { useLanguage, useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { StopEverything } from "./StopEverything";
import type { ActiveTurn, Activity, SpentBudget, WorkerState } from "./activity";
import { dollars } from "./money";
import { useActivity } from "./useActivity";

export function Now({ isStopAsked }: { isStopAsked: boolean }) {
  const t = useTexts();
  const { activity, isConnected } = useActivity();
  return (
    <>
      {!isConnected && <Notice kind="error">{t("error.unreachable")}</Notice>}
      <StopEverything isAsked={isStopAsked} isStopped={activity.panic} turns={activity.turns.length} />
      {activity.budgets.map((budget) => (
        <Budget key={`${budget.measure}/${budget.window}/${budget.block ?? ""}`} budget={budget} />
      ))}
      <Turns activity={activity} />
      {activity.workers.length > 0 && <Workers workers={activity.workers} />}
    </>
  );
}

function Turns({ activity }: { activity: Activity }) {
  const t = useTexts();
  const mayChat = useMay("chat");
  const [failure, setFailure] = useState<unknown>(null);
  const stop = (turn: string) => {
    setFailure(null);
    dataOf(api.POST("/api/turns/{id}/cancel", { params: { path: { id: turn } }, body: {} })).catch(setFailure);
  };
  return (
    <section aria-label={t("activity.now")}>
      <h2>{t("activity.now")}</h2>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {activity.turns.length === 0 && <p className="dim">{t("activity.quiet")}</p>}
      <ul className="cards">
        {activity.turns.map((turn) => (
          <li key={turn.turn} className="card card-row">
            <TurnLine turn={turn} state={t(STATES[turn.status] ?? "activity.running")} />
            {mayChat && <Button onClick={() => stop(turn.turn)}>{t("chat.stop")}</Button>}
          </li>
        ))}
        {activity.ended.map((turn) => (
          <li key={turn.turn} className="card card-row">
            <TurnLine turn={turn} state={t(["cancelled", "stopped"].includes(turn.reason) ? "activity.cancelled" : "activity.finished")} />
          </li>
        ))}
      </ul>
    </section>
  );
}

const STATES: Record<string, TextKey> = { queued: "activity.queued", running: "activity.running", parked: "activity.parked" };

function TurnLine({ turn, state }: { turn: ActiveTurn; state: string }) {
  const t = useTexts();
  return (
    <span>
      <a href={addressOf("chat", turn.conversation)}>{t("approvals.of", { block: turn.block })}</a>{" "}
      <span className="badge">{state}</span>{" "}
      {turn.lane !== undefined && <span className="badge">{t(`activity.lane.${turn.lane}`)}</span>}{" "}
      <a href={addressOf("activity", "trace", turn.turn)}>{t("activity.trace")}</a>
    </span>
  );
}

function Workers({ workers }: { workers: WorkerState[] }) {
  const t = useTexts();
  return (
    <section aria-label={t("activity.workers")}>
      <h2>{t("activity.workers")}</h2>
      <ul className="cards">
        {workers.map((worker) => (
          <li key={worker.worker} className="card card-row">
            <span>
              {worker.worker_kind} {worker.host && <span className="dim">{worker.host}</span>}{" "}
              <span className={`badge ${worker.trouble ? "badge-ERROR" : ""}`}>
                {worker.trouble || t(worker.draining ? "activity.draining" : "activity.alive")}
              </span>
            </span>
            {(worker.restarts ?? 0) > 0 && <span className="dim">{t("activity.restarts", { count: worker.restarts ?? 0 })}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Budget({ budget }: { budget: SpentBudget }) {
  const { t, locale } = useLanguage();
  const isSpend = budget.measure === "spend";
  const words = (value: number) => (isSpend ? dollars(value, locale, 2) : String(value));
  const values = { block: budget.block ?? "", window: budget.window, used: words(budget.used), limit: words(budget.limit) };
  return <Notice kind="error">{t(budget.block ? "activity.budget.block" : "activity.budget", values)}</Notice>;
}
