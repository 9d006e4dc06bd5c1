/** What agents think and do, as a list of entries. Envelopes in, a new list out. */
import { isTurnEvent, type Envelope, type Lane, type TurnEvent } from "../api/envelopes";

export const KINDS = ["thought", "text", "message", "call", "result", "approval", "ended"] as const;
export type ThoughtKind = (typeof KINDS)[number];

/** Pieces of one text are one entry. `at` is the time of its first piece. */
export interface Entry {
  key: string;
  kind: ThoughtKind;
  at: string;
  block: string;
  conversation: string;
  turn: string;
  /** Unknown where only the list of approvals says it. */
  lane: Lane | undefined;
  /** The number of the model call, for its text and reasoning. */
  step: number | null;
  text: string;
}

export interface Thoughts {
  /** The oldest first. */
  entries: Entry[];
  /** The position after which the events of each running turn go on. */
  positions: ReadonlyMap<string, string>;
}

export const NO_THOUGHTS: Thoughts = { entries: [], positions: new Map() };

const KEPT = 500;
/** Characters after which a text goes on in a further entry, so that a long one is not drawn anew with each piece. */
const FULL = 4000;
/** Characters that are shown of arguments and results. The conversation has the whole. */
const CLIPPED = 1000;

export function afterAll(before: Thoughts, envelopes: Envelope[]): Thoughts {
  const entries = [...before.entries];
  const positions = new Map(before.positions);
  for (const envelope of envelopes) {
    if (!isTurnEvent(envelope)) continue;
    const { turn, position } = envelope.payload;
    if (envelope.type === "turn_ended") positions.delete(turn);
    else if (position) positions.set(turn, position);
    add(entries, envelope);
  }
  return { entries: entries.slice(-KEPT), positions };
}

/** Add an event to a list that nobody else has. */
function add(entries: Entry[], event: Envelope & TurnEvent): void {
  if (event.type === "text_reset") {
    const { turn, step } = event.payload;
    const kept = entries.filter((one) => one.turn !== turn || one.step !== step);
    entries.splice(0, entries.length, ...kept);
    return;
  }
  const said = saidBy(event);
  if (said === null) return;
  const { block, conversation, turn, lane } = event.payload;
  const at = said.step === null ? -1 : entries.findLastIndex((one) => one.turn === turn);
  const last = entries[at];
  if (last !== undefined && last.kind === said.kind && last.step === said.step && last.text.length < FULL) {
    entries[at] = { ...last, text: last.text + said.text };
    return;
  }
  entries.push({ ...said, key: event.id, at: event.timestamp, block, conversation, turn, lane });
}

function saidBy({ type, payload }: TurnEvent): Pick<Entry, "kind" | "step" | "text"> | null {
  switch (type) {
    case "thought":
      return { kind: "thought", step: payload.step, text: payload.text };
    case "chat":
      if (payload.role === "user") return { kind: "message", step: null, text: payload.text };
      return { kind: "text", step: payload.step ?? 0, text: payload.text };
    case "tool_call":
      return { kind: "call", step: null, text: clipped(`${payload.name} ${JSON.stringify(payload.arguments)}`) };
    case "tool_result":
      return { kind: "result", step: null, text: clipped(`${payload.name}: ${payload.output ?? ""}`) };
    case "approval_request":
      return { kind: "approval", step: null, text: payload.question };
    case "turn_ended":
      return { kind: "ended", step: null, text: payload.detail || payload.message || payload.reason };
    default:
      return null;
  }
}

function clipped(text: string): string {
  return text.length > CLIPPED ? `${text.slice(0, CLIPPED)} …` : text;
}
