/** The turns of a stored conversation. */
import type { Schemas } from "../api/client";
import { NO_OUTPUT } from "./liveOutput";
import { newTurn, type GivenFile, type Part, type ToolPart, type Turn } from "./turn";

type StoredMessage = Schemas["ConversationMessage"];

interface StoredCall {
  id: string;
  name: string;
  arguments?: Record<string, unknown>;
}

/** Group the messages by the turn that they belong to, in order. The last turn may still run if it has no answer. */
export function turnsOf(messages: StoredMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const id = turnId(message);
    let turn = turns.at(-1);
    if (turn?.id !== id) {
      turn = newTurn(id, id, "", "ended");
      turns.push(turn);
    }
    add(turn, message);
  }
  const last = turns.at(-1);
  if (last?.parts.length === 0 && last.id.startsWith("turn_")) last.phase = "running";
  return turns;
}

function turnId(message: StoredMessage): string {
  const id = message.metadata?.["turn_id"];
  return typeof id === "string" ? id : message.id;
}

/** Add a message to a turn that is being built. */
function add(turn: Turn, message: StoredMessage): void {
  if (message.role === "user") {
    turn.questions.push(message.content);
    turn.files.push(...namesOf(message));
  }
  else if (message.role === "tool") addResult(turn.parts, message);
  else {
    if (message.content) turn.parts.push({ kind: "text", step: turn.parts.length, text: message.content });
    turn.parts.push(...callsOf(message).map(partOf));
  }
}

function addResult(parts: Part[], message: StoredMessage): void {
  const id = message.metadata?.["tool_call_id"];
  const call = parts.findLast((part): part is ToolPart => part.kind === "tool" && part.id === id);
  if (call === undefined) return;
  call.state = message.metadata?.["error"] === true ? "failed" : "done";
  call.output = message.content;
  const files = message.metadata?.["files"];
  if (Array.isArray(files)) call.files = files as GivenFile[];
}

function namesOf(message: StoredMessage): string[] {
  const files = message.metadata?.["attachments"];
  return Array.isArray(files) ? (files as { name: string }[]).map((file) => file.name) : [];
}

function callsOf(message: StoredMessage): StoredCall[] {
  const calls = message.metadata?.["tool_calls"];
  return Array.isArray(calls) ? (calls as StoredCall[]) : [];
}

function partOf(call: StoredCall): ToolPart {
  return {
    kind: "tool", id: call.id, name: call.name, arguments: call.arguments ?? {}, state: "done", output: "",
    note: "", live: NO_OUTPUT, seconds: null, startedAt: 0, approval: null, files: [],
  };
}
