/** Which calls can be undone: those that made a commit in memory, which a new commit takes back. */
import { api, dataOf, type Schemas } from "../api/client";
import { load, save } from "../storage";
import type { ToolPart } from "./turn";

/** The tools whose result names the commit that they made. */
const COMMITTING: ReadonlySet<string> = new Set([
  "memory_write", "memory_edit", "memory_delete", "memory_revert", "forget", "link",
]);
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

const KEY = "undone";
const MAX_KEPT = 500;

/** What an undo takes back: the change of one file, or with an empty path all that the commit changed. */
export interface UndoableChange {
  path: string;
  version: string;
  diff: Schemas["MemoryDiff"];
}

/** The commit that a call made; null if it made none. */
export function commitOf(part: ToolPart): string | null {
  if (part.state !== "done" || !COMMITTING.has(part.name)) return null;
  try {
    const { hash } = JSON.parse(part.output) as { hash?: unknown };
    return typeof hash === "string" && COMMIT.test(hash) ? hash : null;
  } catch {
    return null;
  }
}

/** Calls of a turn that ran at the same time share a commit. Then only the file that this call names is taken back. */
export async function changeOf(part: ToolPart, version: string): Promise<UndoableChange> {
  const whole = await readDiff("", version);
  const named = part.arguments["path"];
  const name = typeof named === "string" ? named.replace(/^\/+/, "") : "";
  const files = whole.files.filter(({ path }) => name !== "" && (path === name || path.endsWith(`/${name}`)));
  const [file] = files;
  if (file === undefined || files.length > 1 || whole.files.length === 1) return { path: "", version, diff: whole };
  return { path: file.path, version, diff: await readDiff(file.path, version) };
}

export async function undo(part: ToolPart, { path, version }: UndoableChange): Promise<void> {
  await dataOf(api.POST("/api/memory/revert", { body: { path, version } }));
  save(KEY, [...load<string[]>(KEY, []), keyOf(part, version)].slice(-MAX_KEPT));
}

/** Whether this browser has undone the call. */
export function wasUndone(part: ToolPart, version: string): boolean {
  return load<string[]>(KEY, []).includes(keyOf(part, version));
}

function keyOf(part: ToolPart, version: string): string {
  return `${version}/${part.id}`;
}

function readDiff(path: string, version: string): Promise<Schemas["MemoryDiff"]> {
  return dataOf(api.GET("/api/memory/diff", { params: { query: { path, new: version } } }));
}
