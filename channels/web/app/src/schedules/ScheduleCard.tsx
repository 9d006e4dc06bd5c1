/** A schedule: its times, what is wrong with it, its runs, and its changes, which only the owner may make. */
import { useState } from "react";

import { useLanguage, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { changeSchedule, type Change, type Schedule, type ScheduleRun } from "./schedules";

export function ScheduleCard({ schedule: one, onChanged }: { schedule: Schedule; onChanged: () => void }) {
  const { t } = useLanguage();
  const isPaused = one.schedule?.enabled === false;
  return (
    <li className="card">
      <h3>
        {one.name} {one.schedule && <span className="badge">{t(`schedules.type.${one.schedule.type ?? "cron"}` as TextKey)}</span>}{" "}
        {isPaused && <span className="badge">{t("schedules.paused")}</span>}{" "}
        {one.problem && <span className="badge badge-ERROR">{t("schedules.wrong")}</span>}
      </h3>
      {one.problem && <p className="notice notice-error">{visible(one.problem)}</p>}
      {one.schedule && <p className="written">{visible(one.schedule.instruction)}</p>}
      <Times schedule={one} isPaused={isPaused} />
      <Runs schedule={one} />
      <p className="dim written">{t("schedules.file", { path: one.path })}</p>
      <Changes schedule={one} isPaused={isPaused} onChanged={onChanged} />
    </li>
  );
}

function Times({ schedule: one, isPaused }: { schedule: Schedule; isPaused: boolean }) {
  const { t, locale } = useLanguage();
  if (one.schedule === null || isPaused) return one.times ? <p className="dim">{one.times}</p> : null;
  const [first, ...later] = one.next;
  if (first === undefined) return <p className="dim">{one.times} · {t("schedules.never")}</p>;
  return (
    <>
      <p>
        <time dateTime={first}>{t("schedules.next", { time: inZone(first, locale, one.time_zone), zone: one.time_zone })}</time>{" "}
        <span className="dim">{one.times}</span>
      </p>
      {later.length > 0 && (
        <details>
          <summary>{t("schedules.later")}</summary>
          <ul>{later.map((due) => <li key={due}><time dateTime={due}>{inZone(due, locale, one.time_zone)}</time></li>)}</ul>
        </details>
      )}
    </>
  );
}

function Runs({ schedule: one }: { schedule: Schedule }) {
  const { t } = useLanguage();
  const [last] = one.runs;
  if (last === undefined) return <p className="dim">{t("schedules.runs.none")}</p>;
  return (
    <details>
      <summary>{t("schedules.runs")}: {t(`schedules.outcome.${last.outcome}`)}</summary>
      <ul>{one.runs.map((run, at) => <li key={`${run.due_at} ${at}`}><Run run={run} zone={one.time_zone} /></li>)}</ul>
    </details>
  );
}

function Run({ run, zone }: { run: ScheduleRun; zone: string }) {
  const { t, locale } = useLanguage();
  return (
    <>
      <time dateTime={run.due_at}>{inZone(run.due_at, locale, zone)}</time>{" "}
      <span className={`badge ${run.outcome === "failed" ? "badge-ERROR" : ""}`}>{t(`schedules.outcome.${run.outcome}`)}</span>{" "}
      {(run.count ?? 1) > 1 && <span className="dim">{t("schedules.times", { count: run.count ?? 1 })} </span>}
      {run.detail && <span className="dim">{visible(run.detail)} </span>}
      {run.conversation && <a href={addressOf("chat", run.conversation)}>{t("schedules.conversation")}</a>}{" "}
      {run.turn && <a href={addressOf("activity", "trace", run.turn)}>{t("activity.trace")}</a>}
    </>
  );
}

function Changes({ schedule: one, isPaused, onChanged }: { schedule: Schedule; isPaused: boolean; onChanged: () => void }) {
  const { t } = useLanguage();
  const isOwner = useMay("owner", { everywhere: true });
  const [isAsked, setAsked] = useState(false);
  const [isBegun, setBegun] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const change = (what: Change) => {
    setFailure(null);
    setBegun(false);
    changeSchedule(one, what).then(() => {
      setBegun(what === "run");
      onChanged();
    }, setFailure);
  };
  if (!isOwner) return null;
  return (
    <>
      <div className="choices">
        {one.schedule && <Button onClick={() => change("run")}>{t("schedules.run")}</Button>}
        {one.schedule && <Button onClick={() => change(isPaused ? "resume" : "pause")}>{t(isPaused ? "schedules.resume" : "schedules.pause")}</Button>}
        <Button kind="danger" onClick={() => setAsked(true)}>{t("schedules.remove")}</Button>
      </div>
      {isBegun && <Notice kind="info">{t("schedules.run.begun")}</Notice>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isAsked && (
        <Dialog title={t("schedules.remove.title", { name: one.name, block: one.block })} submit={t("schedules.remove")} isDangerous onClose={() => setAsked(false)} onSubmit={() => change("remove")}>
          <p>{t("schedules.remove.means")}</p>
        </Dialog>
      )}
    </>
  );
}

/** A time as the clocks of a zone show it. A zone that the browser does not know is shown in its own. */
function inZone(time: string, locale: string, zone: string): string {
  const options: Intl.DateTimeFormatOptions = { weekday: "short", year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" };
  try {
    return new Date(time).toLocaleString(locale, { ...options, timeZone: zone });
  } catch {
    return new Date(time).toLocaleString(locale, options);
  }
}
