/** The schedules: routes of the plugin. */
import { api, dataOf } from "../api/client";
import { askPlugin, unlessOff } from "../api/plugin";

/** A due time and what became of it. `turn` and `conversation` are missing if no turn began. */
export interface ScheduleRun {
  due_at: string;
  outcome: "started" | "finished" | "failed" | "skipped" | "missed" | "quiet";
  turn?: string;
  conversation?: string;
  count?: number;
  detail?: string;
}

/** A schedule. `schedule` is null if a person must correct the file, as `problem` says. Times are instants. */
export interface Schedule {
  block: string;
  name: string;
  path: string;
  problem: string;
  schedule: { instruction: string; type?: string; enabled?: boolean } | null;
  times: string;
  time_zone: string;
  next: string[];
  runs: ScheduleRun[];
}

interface Schedules {
  schedules: Schedule[];
}

export type Change = "run" | "pause" | "resume" | "remove";

/** All schedules that may be seen; `null` if the plugin is off. The owner asks once, anybody else for each block. */
export async function loadSchedules(isOwner: boolean): Promise<Schedule[] | null> {
  if (isOwner) return (await unlessOff(askPlugin<Schedules>("trunkline-pulse/schedules")))?.schedules ?? null;
  const { blocks } = await dataOf(api.GET("/api/blocks"));
  const found = await Promise.all(blocks.map(({ name }) => unlessOff(askPlugin<Schedules>(`trunkline-pulse/blocks/${encodeURIComponent(name)}/schedules`))));
  const seen = found.filter((one) => one !== null);
  return seen.length === 0 && blocks.length > 0 ? null : seen.flatMap((one) => one.schedules);
}

export const changeSchedule = ({ block, name }: Schedule, change: Change) => askPlugin(`trunkline-pulse/blocks/${encodeURIComponent(block)}/schedules/${encodeURIComponent(name)}/${change}`, "POST");
