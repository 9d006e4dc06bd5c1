/** The background tasks that agents started: their state, their output as it comes, and the way to end them. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { usePolled } from "../api/usePolled";
import { useLanguage, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

const LIST_MS = 3000;
const OUTPUT_MS = 1000;

export function Tasks() {
  const { t } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/tasks")), []);
  const { data, failure, refresh } = usePolled(ask, LIST_MS);
  return (
    <section aria-label={t("activity.tasks")}>
      <p className="dim">{t("activity.tasks.where")}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.tasks.length === 0 && <p>{t("activity.tasks.none")}</p>}
      <ul className="cards">
        {data?.tasks.map((task) => (
          <li key={`${task.block} ${task.id}`} className="card"><Task task={task} onStopped={refresh} /></li>
        ))}
      </ul>
    </section>
  );
}

function Task({ task, onStopped }: { task: Schemas["TaskItem"]; onStopped: () => void }) {
  const { t, locale } = useLanguage();
  const [isOpen, setOpen] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const path = { block: task.block, id: task.id };
  const stop = () => {
    setFailure(null);
    dataOf(api.POST("/api/tasks/{block}/{id}/stop", { params: { path } })).then(onStopped, setFailure);
  };
  return (
    <>
      <p><code>{task.command}</code> <span className="badge">{t(stateOf(task), { code: task.exit_code ?? "", why: task.killed || task.fault || "" })}</span></p>
      <p className="dim">{task.block}{task.started && <> · <time dateTime={task.started}>{new Date(task.started).toLocaleString(locale)}</time></>}</p>
      <div className="choices">
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{t("activity.tasks.output")}</Button>
        {task.state === "running" && <Button kind="danger" onClick={stop}>{t("activity.tasks.stop")}</Button>}
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isOpen && <Output {...path} />}
    </>
  );
}

function Output({ block, id }: { block: string; id: string }) {
  const { t } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/tasks/{block}/{id}", { params: { path: { block, id } } })), [block, id]);
  const { data, failure } = usePolled(ask, OUTPUT_MS);
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  return <pre className="effect" role="log" aria-label={t("activity.tasks.output")}>{data?.output || t("activity.tasks.silent")}</pre>;
}

function stateOf(task: Schemas["TaskItem"]): TextKey {
  if (task.state !== "ended") return task.state === "running" ? "activity.running" : "activity.tasks.lost";
  return task.killed || task.fault ? "activity.tasks.broken" : "activity.tasks.ended";
}
