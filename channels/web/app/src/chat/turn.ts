/** A turn as a page shows it: a message and the parts of its answer. Events in, a new turn out; nothing else. */
import type { Schemas } from "../api/client";
import type { TurnEvent } from "../api/events";

export interface TextPart {
  kind: "text";
  text: string;
}

export interface ToolPart {
  kind: "tool";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  state: "running" | "waiting" | "done" | "failed";
  output: string;
  seconds: number | null;
  startedAt: number;
  approval: Approval | null;
}

export interface StatusPart {
  kind: "status";
  name: string;
  text: string;
}

export type Part = TextPart | ToolPart | StatusPart;

/** A question about a call, with the decision if there is one. */
export interface Approval {
  hash: string;
  question: string;
  detail: Schemas["ApprovalDetail"] | null;
  expiresAt: string | null;
  settled: Schemas["ApprovalSettledData"] | null;
}

/** `sending`: not accepted yet. `waiting`: a person must decide, or an earlier turn is not over. */
export type Phase = "sending" | "running" | "waiting" | "ended";

export interface Turn {
  /** The key of the turn on the page. It stays when the gateway gives the turn its id. */
  key: string;
  id: string;
  questions: string[];
  parts: Part[];
  phase: Phase;
  position: string;
  finish: string;
  usage: Schemas["UsageCount"] | null;
  failure: { code: string; reason: string } | null;
}

export function newTurn(key: string, id: string, question: string, phase: Phase): Turn {
  const questions = question ? [question] : [];
  return { key, id, questions, parts: [], phase, position: "", finish: "", usage: null, failure: null };
}

/** The turn after an event. `now` is the time in milliseconds. */
export function afterEvent(turn: Turn, event: TurnEvent, now: number): Turn {
  const next = { ...turn, position: event.id || turn.position };
  switch (event.name) {
    case "text-delta":
      return { ...next, phase: "running", parts: withText(turn.parts, event.data.content) };
    case "text-reset":
      return { ...next, parts: withWholeText(turn.parts, event.data.content) };
    case "status":
      return afterStatus(next, event.data);
    case "tool-call":
      return { ...next, phase: "running", parts: withCall(turn.parts, event.data, now) };
    case "tool-result":
      return { ...next, phase: "running", parts: withResult(turn.parts, event.data, now) };
    case "approval-request":
      return { ...next, phase: "waiting", parts: withApproval(turn.parts, event.data, now) };
    case "approval-settled":
      return { ...next, phase: "running", parts: withSettlement(turn.parts, event.data, now) };
    case "done":
      return { ...next, phase: "ended", finish: event.data.finish_reason, usage: event.data.usage };
    case "error":
      return { ...next, phase: "ended", finish: "error", failure: failureOf(event.data) };
    default:
      return next; // an event of a newer gateway
  }
}

/** The whole text of the answer. */
export function textOf(turn: Turn): string {
  return turn.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

export function failureOf(error: Schemas["Error"]): { code: string; reason: string } {
  const detail = error.metadata?.["detail"] ?? error.metadata?.["reason"];
  return { code: error.code, reason: typeof detail === "string" ? detail : error.message };
}

function withText(parts: Part[], text: string): Part[] {
  const last = parts.at(-1);
  if (last?.kind !== "text") return [...parts, { kind: "text", text }];
  return [...parts.slice(0, -1), { kind: "text", text: last.text + text }];
}

/** Replace all text. Text before the last call stays in its place where the whole text begins with it. */
function withWholeText(parts: Part[], whole: string): Part[] {
  const last = parts.findLastIndex((part) => part.kind === "text");
  const before = parts.slice(0, Math.max(last, 0)).map((part) => (part.kind === "text" ? part.text : ""));
  const kept = before.join("");
  if (whole.startsWith(kept)) {
    const rest: Part = { kind: "text", text: whole.slice(kept.length) };
    return last < 0 ? [...parts, rest] : parts.toSpliced(last, 1, rest);
  }
  return [...parts.filter((part) => part.kind !== "text"), { kind: "text", text: whole }];
}

function afterStatus(turn: Turn, data: Schemas["StatusData"]): Turn {
  if (data.name === "waiting") return { ...turn, phase: "waiting" };
  if (!data.text) return turn;
  const parts = turn.parts.filter((part) => part.kind !== "status" || part.name !== data.name);
  return { ...turn, parts: [...parts, { kind: "status", name: data.name, text: data.text }] };
}

function withCall(parts: Part[], data: Schemas["ToolCallData"], now: number): Part[] {
  return changed(parts, data.id, now, (part) => ({ ...part, name: data.name, arguments: data.arguments }));
}

function withResult(parts: Part[], data: Schemas["ToolOutputData"] | Schemas["ToolFailureData"], now: number): Part[] {
  const failed = "error" in data;
  return changed(parts, data.id, now, (part) => ({
    ...part,
    state: failed ? "failed" : "done",
    output: failed ? data.error : data.output,
    seconds: part.startedAt ? (now - part.startedAt) / 1000 : null,
  }));
}

function withApproval(parts: Part[], data: Schemas["ApprovalRequestData"], now: number): Part[] {
  const approval: Approval = {
    hash: data.hash,
    question: data.question,
    detail: data.detail ?? null,
    expiresAt: data.expires_at ?? null,
    settled: null,
  };
  const asked = { name: data.name, arguments: data.arguments, state: "waiting" as const, approval };
  return changed(parts, data.id, now, (part) => ({ ...part, ...asked }));
}

function withSettlement(parts: Part[], data: Schemas["ApprovalSettledData"], now: number): Part[] {
  return changed(parts, data.id, now, (part) => ({
    ...part,
    state: part.state === "waiting" ? "running" : part.state,
    startedAt: now, // how long a person took is not how long the tool takes
    approval: part.approval && { ...part.approval, settled: data },
  }));
}

/** The parts with one call changed; a call that is not there yet is added first. */
function changed(parts: Part[], id: string, now: number, change: (part: ToolPart) => ToolPart): Part[] {
  const at = parts.findIndex((part) => part.kind === "tool" && part.id === id);
  const found = parts[at];
  if (found?.kind === "tool") return parts.toSpliced(at, 1, change(found));
  const added: ToolPart = {
    kind: "tool", id, name: "", arguments: {}, state: "running", output: "", seconds: null, startedAt: now, approval: null,
  };
  return [...parts, change(added)];
}
