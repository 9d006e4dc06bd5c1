/** What agents do by the clock, by block: the next times, the last runs, and what the owner does with a schedule. */
import { useCallback } from "react";

import { usePolled } from "../api/usePolled";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import "../styles/pages.css";
import { Notice } from "../ui/Notice";
import { ScheduleCard } from "./ScheduleCard";
import { loadSchedules, type Schedule } from "./schedules";

const EVERY_MS = 5000;

export default function SchedulesPage() {
  const t = useTexts();
  const isOwner = useMay("owner", { everywhere: true });
  const ask = useCallback(async () => ({ schedules: await loadSchedules(isOwner) }), [isOwner]);
  const { data, failure, refresh } = usePolled(ask, EVERY_MS);
  return (
    <div className="page">
      <h1>{t("nav.schedules")}</h1>
      <p className="dim">{t("schedules.how")}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data === null && failure === null && <p className="waiting">{t("app.loading")}</p>}
      {data?.schedules === null && <p>{t("schedules.none.plugin")}</p>}
      {data?.schedules?.length === 0 && <p>{t("schedules.none")}</p>}
      {byBlock(data?.schedules ?? []).map(([block, schedules]) => (
        <section key={block} aria-label={block}>
          <h2>{block}</h2>
          <ul className="cards">
            {schedules.map((one) => <ScheduleCard key={one.name} schedule={one} onChanged={refresh} />)}
          </ul>
        </section>
      ))}
    </div>
  );
}

function byBlock(schedules: Schedule[]): [string, Schedule[]][] {
  const blocks = new Map<string, Schedule[]>();
  for (const one of schedules) blocks.set(one.block, [...(blocks.get(one.block) ?? []), one]);
  return [...blocks];
}
