/** Sends a message until it is accepted: the gateway may stop and start meanwhile. */
import { ApiError, errorOf } from "../api/client";
import type { OutboxEntry } from "./outbox";

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;

/** What the model learns about the page, in its own language: at most 500 characters. */
const SHOWS = "The web app in a browser. It shows Markdown with tables, formulas between dollar signs, highlighted code and links.";

export interface Accepted {
  conversation: string;
  turn: string;
}

/** Returns null if it was given up. Raises ApiError if the message is refused. */
export async function deliver(entry: OutboxEntry, failed: () => void, given: AbortSignal): Promise<Accepted | null> {
  let pause = FIRST_PAUSE_MS;
  const isWanted = () => !given.aborted;
  while (isWanted()) {
    try {
      return await post(entry, given);
    } catch (error) {
      if (!isWanted()) return null;
      if (error instanceof ApiError && !error.isTemporary) throw error;
      failed();
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  return null;
}

/** Send it once. The head of the response says what it became; its events come over the WebSocket. */
async function post(entry: OutboxEntry, given: AbortSignal): Promise<Accepted> {
  const ended = new AbortController();
  const { conversation } = entry;
  const path = conversation ? `/conversations/${encodeURIComponent(conversation)}/messages` : "/conversations/messages";
  const files = entry.files.length > 0 ? { files: entry.files.map((file) => file.id) } : {};
  const metadata = { client_message_id: entry.key, ...files, ...(entry.block && !conversation ? { block: entry.block } : {}) };
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ content: entry.content, metadata, shows: SHOWS }),
    signal: AbortSignal.any([given, ended.signal]),
  });
  if (!response.ok) throw errorOf(response, await response.json().catch(() => null));
  const accepted = {
    conversation: response.headers.get("x-conversation-id") ?? conversation,
    turn: response.headers.get("x-turn-id") ?? "",
  };
  ended.abort();
  return accepted;
}
