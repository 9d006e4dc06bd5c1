/** Export of all of memory, and import: first what it would change, then the import itself. */
import { useRef, useState, type ReactNode } from "react";

import type { Schemas } from "../api/client";
import type { Progress } from "../api/upload";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { exportMemory, importMemory, saveFile } from "./transfers";

export default function Transfer({ onImported }: { onImported: () => void }) {
  const t = useTexts();
  return (
    <>
      <h1>{t("memory.transfer")}</h1>
      <section className="card" aria-label={t("memory.export")}>
        <h2>{t("memory.export")}</h2>
        <Export />
      </section>
      <section className="card" aria-label={t("memory.import")}>
        <h2>{t("memory.import")}</h2>
        <Import onImported={onImported} />
      </section>
    </>
  );
}

function Export() {
  const t = useTexts();
  const [isDone, setDone] = useState(false);
  const task = useTask();
  const start = () => {
    setDone(false);
    task.run(async (onProgress, signal) => {
      saveFile(await exportMemory(onProgress, signal), "memory.tar");
      setDone(true);
    });
  };
  return (
    <>
      <p>{t("memory.export.means")}</p>
      <TaskView task={task} label={t("memory.export")}>
        <Button kind="primary" onClick={start}>{t("memory.export")}</Button>
      </TaskView>
      {isDone && <Notice kind="info">{t("memory.export.done")}</Notice>}
    </>
  );
}

function Import({ onImported }: { onImported: () => void }) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  const [archive, setArchive] = useState<File | null>(null);
  const [outcome, setOutcome] = useState<Schemas["MemoryImported"] | null>(null);
  const task = useTask();
  const start = (file: File, isTrial: boolean) => {
    setArchive(file);
    setOutcome(null);
    task.run(async (onProgress, signal) => {
      setOutcome(await importMemory({ archive: file, isTrial }, onProgress, signal));
      if (!isTrial) onImported();
    });
  };
  const choose = (file: File | undefined) => {
    if (file !== undefined) start(file, true);
  };
  return (
    <>
      <p>{t("memory.import.means")}</p>
      <input ref={field} type="file" hidden aria-label={t("memory.import.choose")} onChange={(event) => { choose(event.target.files?.[0]); event.target.value = ""; }} />
      <TaskView task={task} label={t("memory.import")}>
        <Button onClick={() => field.current?.click()}>{t("memory.import.choose")}</Button>
        {archive !== null && outcome?.dry_run && <Button kind="primary" onClick={() => start(archive, false)}>{t("memory.import.do", { name: archive.name })}</Button>}
      </TaskView>
      {outcome !== null && <Outcome outcome={outcome} />}
    </>
  );
}

function Outcome({ outcome }: { outcome: Schemas["MemoryImported"] }) {
  const t = useTexts();
  const { added = 0, changed = 0, removed = 0, conflicts = [], gaps = [] } = outcome;
  return (
    <>
      <Notice kind="info">{t(outcome.dry_run ? "memory.import.would" : "memory.import.done", { added, changed, removed })}</Notice>
      {conflicts.length > 0 && <p>{t("memory.import.conflicts")}</p>}
      <ul>{conflicts.map((one) => <li key={one.path}>{one.path}: {one.what}</li>)}</ul>
      {gaps.length > 0 && <p>{t("memory.import.gaps")}</p>}
      <ul>{gaps.map((one, index) => <li key={index}>{Object.values(one).join(": ")}</li>)}</ul>
    </>
  );
}

interface Task {
  /** Null while nothing runs. */
  progress: Progress | null;
  failure: unknown;
  run: (work: (onProgress: (progress: Progress) => void, signal: AbortSignal) => Promise<void>) => void;
  cancel: () => void;
}

/** Work that says how far it is and can be given up. */
function useTask(): Task {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const given = useRef<AbortController | null>(null);
  const run: Task["run"] = (work) => {
    given.current = new AbortController();
    const { signal } = given.current;
    setFailure(null);
    setProgress({ bytes: 0, total: 0 });
    work(setProgress, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) setFailure(error);
      })
      .finally(() => setProgress(null));
  };
  return { progress, failure, run, cancel: () => given.current?.abort() };
}

/** The buttons that start it, or how far it is. What Trunkline itself has begun is not given up. */
function TaskView({ task, label, children }: { task: Task; label: string; children: ReactNode }) {
  const t = useTexts();
  const { progress } = task;
  if (progress === null) {
    return (
      <>
        <div className="choices">{children}</div>
        {task.failure !== null && <Notice kind="error">{sentence(t, task.failure)}</Notice>}
      </>
    );
  }
  const isMoving = progress.total > 0;
  return (
    <div className="choices">
      <progress aria-label={label} max={isMoving ? progress.total : undefined} value={isMoving ? progress.bytes : undefined} />
      <span className="dim" aria-live="polite">{isMoving ? t("memory.transfer.moved", { bytes: megabytes(progress.bytes), total: megabytes(progress.total) }) : t("memory.transfer.works")}</span>
      <Button onClick={task.cancel}>{t("ui.cancel")}</Button>
    </div>
  );
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
