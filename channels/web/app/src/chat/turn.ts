/** A turn as a page shows it: a message and the parts of its answer. Events in, a new turn out; nothing else. */
import type { Schemas } from "../api/client";
import type { TurnEvent } from "../api/envelopes";
import { NO_OUTPUT, withOutput, type LiveOutput } from "./liveOutput";

/** Text of the answer, or reasoning, of one call of the model. */
export interface TextPart {
  kind: "text" | "thought";
  step: number;
  text: string;
}

/** A message that a person sent into the running turn. */
export interface SteerPart {
  kind: "steer";
  text: string;
}

/** A file that a call gave to the person, with its size in bytes. */
export interface GivenFile {
  path: string;
  name: string;
  size: number;
}

export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  state: "running" | "waiting" | "done" | "failed";
  output: string;
  /** What a running call says about its progress. */
  note: string;
  live: LiveOutput;
  seconds: number | null;
  startedAt: number;
  approval: Approval | null;
  files: GivenFile[];
}

export interface StatusPart {
  kind: "status";
  name: string;
  text: string;
  data: Record<string, unknown>;
}

export type Part = TextPart | SteerPart | ToolPart | StatusPart;

/** A question about a call, with the decision if there is one. */
export interface Approval {
  hash: string;
  question: string;
  detail: Schemas["ApprovalDetail"] | null;
  expiresAt: string | null;
  settled: { allow: boolean; by: string } | null;
}

/** `sending`: not accepted yet. `waiting`: a person must decide, or an earlier turn is not over. */
export type Phase = "sending" | "running" | "waiting" | "ended";

export interface Turn {
  /** The key of the turn on the page. It stays when the gateway gives the turn its id. */
  key: string;
  id: string;
  questions: string[];
  /** The names of the files of the message. */
  files: string[];
  parts: Part[];
  phase: Phase;
  position: string;
  finish: string;
  usage: Schemas["UsageCount"] | null;
  /** In US dollars; null if it is not known. */
  cost: number | null;
  failure: { code: string; reason: string } | null;
}

export function newTurn(key: string, id: string, question: string, phase: Phase, files: string[] = []): Turn {
  const questions = question ? [question] : [];
  return { key, id, questions, files, parts: [], phase, position: "", finish: "", usage: null, cost: null, failure: null };
}

/** The turn after an event. `now` is the time in milliseconds. */
export function afterEvent(turn: Turn, { type, payload }: TurnEvent, now: number): Turn {
  const next: Turn = { ...turn, position: payload.position ?? turn.position, phase: "running" };
  switch (type) {
    case "chat":
      if (payload.role === "user") return { ...next, parts: [...turn.parts, { kind: "steer", text: payload.text }] };
      return { ...next, parts: withText(turn.parts, "text", payload.step ?? 0, payload.text) };
    case "thought":
      return { ...next, parts: withText(turn.parts, "thought", payload.step, payload.text) };
    case "text_reset":
      return { ...next, parts: turn.parts.filter((part) => !("step" in part) || part.step !== payload.step) };
    case "tool_call":
      return { ...next, parts: withCall(turn.parts, payload, now) };
    case "tool_progress":
      return { ...turn, position: next.position, parts: withProgress(turn.parts, payload, now) };
    case "tool_result":
      return { ...next, parts: withResult(turn.parts, payload, now) };
    case "approval_request":
      return { ...next, phase: "waiting", parts: withApproval(turn.parts, payload, now) };
    case "approval_settled":
      return { ...next, parts: withSettlement(turn.parts, payload, now) };
    case "status":
      return { ...next, phase: turn.phase, parts: withStatus(turn.parts, payload) };
    case "turn_ended":
      return ended(next, payload);
  }
}

/** The whole text of the answer. */
export function textOf(turn: Turn): string {
  return turn.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

type PayloadOf<Name extends TurnEvent["type"]> = Extract<TurnEvent, { type: Name }>["payload"];

function ended(turn: Turn, payload: PayloadOf<"turn_ended">): Turn {
  const reason = payload.detail ?? payload.message ?? "";
  const cost = typeof payload.cost === "number" ? payload.cost / 1e6 : null;
  const failure = payload.code ? { code: payload.code, reason } : null;
  return { ...turn, phase: "ended", finish: payload.reason, usage: payload.usage, cost, failure };
}

/** Add text to that of its step, or begin the text of a step at the end. */
function withText(parts: Part[], kind: TextPart["kind"], step: number, text: string): Part[] {
  const at = parts.findLastIndex((part) => part.kind === kind && part.step === step);
  const found = parts[at];
  if (found === undefined || !("step" in found)) return [...parts, { kind, step, text }];
  return parts.toSpliced(at, 1, { ...found, text: found.text + text });
}

function withStatus(parts: Part[], payload: PayloadOf<"status">): Part[] {
  const { name = "", text = "", data = {} } = payload;
  if (payload.kind !== "agent" || !text) return parts;
  return [...parts.filter((part) => part.kind !== "status" || part.name !== name), { kind: "status", name, text, data }];
}

function withCall(parts: Part[], data: PayloadOf<"tool_call">, now: number): Part[] {
  return changed(parts, data.call, now, (part) => ({ ...part, name: data.name, arguments: data.arguments }));
}

function withProgress(parts: Part[], data: PayloadOf<"tool_progress">, now: number): Part[] {
  return changed(parts, data.call, now, (part) => {
    if (part.state !== "running") return part;
    return { ...part, note: data.note ?? "", live: withOutput(part.live, data.offset ?? 0, data.output ?? "") };
  });
}

function withResult(parts: Part[], data: PayloadOf<"tool_result">, now: number): Part[] {
  return changed(parts, data.call, now, (part) => ({
    ...part,
    state: data.error ? "failed" : "done",
    output: data.output ?? "",
    live: NO_OUTPUT,
    files: data.files ?? [],
    seconds: part.startedAt ? (now - part.startedAt) / 1000 : null,
  }));
}

function withApproval(parts: Part[], data: PayloadOf<"approval_request">, now: number): Part[] {
  const approval: Approval = {
    hash: data.hash,
    question: data.question,
    detail: data.detail ?? null,
    expiresAt: data.expires_at ?? null,
    settled: null,
  };
  const asked = { name: data.name, state: "waiting" as const, approval };
  return changed(parts, data.call, now, (part) => ({ ...part, ...asked, arguments: data.arguments ?? part.arguments }));
}

function withSettlement(parts: Part[], data: PayloadOf<"approval_settled">, now: number): Part[] {
  return changed(parts, data.call, now, (part) => ({
    ...part,
    state: part.state === "waiting" ? "running" : part.state,
    startedAt: now, // how long a person took is not how long the tool takes
    approval: part.approval && { ...part.approval, settled: { allow: data.allow, by: data.by } },
  }));
}

/** The parts with one call changed; a call that is not there yet is added first. */
function changed(parts: Part[], id: string, now: number, change: (part: ToolPart) => ToolPart): Part[] {
  const at = parts.findIndex((part) => part.kind === "tool" && part.id === id);
  const found = parts[at];
  if (found?.kind === "tool") return parts.toSpliced(at, 1, change(found));
  const added: ToolPart = {
    kind: "tool", id, name: "", arguments: {}, state: "running", output: "", note: "", live: NO_OUTPUT, seconds: null, startedAt: now, approval: null, files: [],
  };
  return [...parts, change(added)];
}
