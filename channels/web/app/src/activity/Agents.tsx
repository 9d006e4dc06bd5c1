/** The agents that work for other agents: each task below the turn that gave it, as a tree, and the way to end them. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { usePolled } from "../api/usePolled";
import { useLanguage, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { dollars } from "./money";

const LIST_MS = 3000;

type Task = Schemas["AgentTaskItem"];

export function Agents() {
  const { t } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/agents")), []);
  const { data, failure, refresh } = usePolled(ask, LIST_MS);
  const tasks = data?.tasks ?? [];
  const listed = new Set(tasks.map((one) => one.id));
  const roots = tasks.filter((one) => !listed.has(one.parent_turn));
  return (
    <section aria-label={t("activity.agents")}>
      <p className="dim">{t("activity.agents.how")}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.agents.length === 0 && tasks.length === 0 && <p>{t("activity.agents.none")}</p>}
      <TaskTree tasks={tasks} below={roots} onEnded={refresh} />
      {(data?.agents.length ?? 0) > 0 && <h2>{t("activity.agents.lasting")}</h2>}
      <ul className="cards">
        {data?.agents.map((agent) => (
          <li key={agent.id} className="card">
            <p><strong>{agent.name}</strong> <span className="dim">{t("approvals.of", { block: agent.block })}</span></p>
            <p>
              <a href={addressOf("chat", agent.conversation)}>{t("schedules.conversation")}</a> ·{" "}
              <a href={addressOf("chat", agent.parent_conversation)}>{t("activity.agents.for")}</a>
            </p>
            <End id={agent.id} name={agent.name} onEnded={refresh} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function TaskTree({ tasks, below, onEnded }: { tasks: Task[]; below: Task[]; onEnded: () => void }) {
  if (below.length === 0) return null;
  return (
    <ul className="cards agent-tasks">
      {below.map((task) => (
        <li key={task.id} className="card">
          <TaskLine task={task} onEnded={onEnded} />
          <TaskTree tasks={tasks} below={tasks.filter((one) => one.parent_turn === task.id)} onEnded={onEnded} />
        </li>
      ))}
    </ul>
  );
}

function TaskLine({ task, onEnded }: { task: Task; onEnded: () => void }) {
  const { t, locale } = useLanguage();
  return (
    <>
      <p>
        <strong>{task.agent}</strong>{" "}
        <span className={`badge ${["failed", "timed_out"].includes(task.state) ? "badge-ERROR" : ""}`}>{t(`activity.agents.state.${task.state}` as TextKey)}</span>{" "}
        {task.awaited && task.state === "running" && <span className="badge">{t("activity.agents.awaited")}</span>}
      </p>
      <p className="dim">
        {t("approvals.of", { block: task.block })} · <time dateTime={task.started_at}>{new Date(task.started_at).toLocaleString(locale)}</time>
      </p>
      <p>
        <a href={addressOf("chat", task.conversation)}>{t("schedules.conversation")}</a> ·{" "}
        <a href={addressOf("chat", task.parent_conversation)}>{t("activity.agents.for")}</a> ·{" "}
        <a href={addressOf("activity", "trace", task.id)}>{t("activity.trace")}</a>
      </p>
      <div className="choices">
        <Cost task={task} />
        {task.state === "running" && <End id={task.id} name={task.agent} onEnded={onEnded} />}
      </div>
    </>
  );
}

/** What the task's conversation cost, asked for by a press: the ledger is read for it. */
function Cost({ task }: { task: Task }) {
  const { t, locale } = useLanguage();
  const [total, setTotal] = useState<number | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const look = () => {
    setFailure(null);
    const query = { by: "conversation", block: task.block } as const;
    dataOf(api.GET("/api/costs", { params: { query } })).then(
      ({ rows }) => setTotal(rows.find((one) => one.key === task.conversation)?.cost ?? 0),
      setFailure,
    );
  };
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (total !== null) return <span role="status">{t("activity.agents.cost", { cost: dollars(total, locale, 4) })}</span>;
  return <Button onClick={look}>{t("activity.agents.look")}</Button>;
}

function End({ id, name, onEnded }: { id: string; name: string; onEnded: () => void }) {
  const { t } = useLanguage();
  const mayOperate = useMay("operate");
  const [isAsked, setAsked] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const end = () => {
    setFailure(null);
    dataOf(api.POST("/api/agents/{id}/end", { params: { path: { id } } })).then(onEnded, setFailure);
  };
  if (!mayOperate) return null;
  return (
    <>
      <Button kind="danger" onClick={() => setAsked(true)}>{t("activity.agents.end")}</Button>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isAsked && (
        <Dialog title={t("activity.agents.end.title", { name })} submit={t("activity.agents.end")} isDangerous onClose={() => setAsked(false)} onSubmit={end}>
          <p>{t("activity.agents.end.means")}</p>
        </Dialog>
      )}
    </>
  );
}
