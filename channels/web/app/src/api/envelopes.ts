/** The envelopes of the gateway's WebSocket that the app reads: docs/reference/websocket.md. */
import type { Schemas } from "./client";

/** The priority of a turn. */
export type Lane = "system" | "interactive" | "background";

/** The turn that an event is of, and its position there. */
interface TurnPlace {
  block: string;
  conversation: string;
  turn: string;
  position?: string;
  lane?: Lane;
}

interface Payloads {
  chat: TurnPlace & { role?: "assistant" | "user"; step?: number; text: string };
  thought: TurnPlace & { step: number; text: string };
  text_reset: TurnPlace & { step: number };
  tool_call: TurnPlace & { call: string; name: string; arguments: Record<string, unknown> };
  tool_progress: TurnPlace & { call: string; note?: string; offset?: number; output?: string };
  tool_result: TurnPlace & { call: string; name: string; output?: string; error?: boolean; files?: { path: string; name: string; size: number }[] };
  approval_request: TurnPlace & {
    call: string;
    name: string;
    hash: string;
    question: string;
    arguments?: Record<string, unknown> | null;
    expires_at?: string | null;
    detail?: Schemas["ApprovalDetail"] | null;
  };
  approval_settled: TurnPlace & { call: string; allow: boolean; by: string };
  status: TurnPlace & { kind: string; name?: string; text?: string; data?: Record<string, unknown> };
  turn_ended: TurnPlace & {
    reason: string;
    usage: Schemas["UsageCount"];
    code?: string | null;
    message?: string;
    detail?: string;
    cost?: number | null;
    answered_by?: string;
  };
}

/** An event of a turn. */
export type TurnEvent = { [Name in keyof Payloads]: { type: Name; payload: Payloads[Name] } }[keyof Payloads];

/** An event that this page does not know is one of a newer gateway. */
const TURN_EVENTS: ReadonlySet<string> = new Set<TurnEvent["type"]>([
  "chat", "thought", "text_reset", "tool_call", "tool_progress", "tool_result", "approval_request", "approval_settled", "status", "turn_ended",
]);

/** Any envelope, before it is known what it is. */
export interface Envelope {
  type: string;
  /** An event has the same id in every subscription. */
  id: string;
  timestamp: string;
  payload: Record<string, unknown>;
}

export function isTurnEvent(envelope: Envelope): envelope is Envelope & TurnEvent {
  return TURN_EVENTS.has(envelope.type) && typeof envelope.payload["turn"] === "string";
}
