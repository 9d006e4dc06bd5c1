/** Reads a turn to its end, over any number of connections: the gateway may stop and start meanwhile. */
import { ApiError, errorOf } from "../api/client";
import { readEvents, type TurnEvent } from "../api/events";
import type { OutboxEntry } from "./outbox";

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;

/** What became of a turn. `isConnected` is false while the gateway is not reached. */
export interface TurnObserver {
  accepted: (conversation: string, turn: string) => void;
  event: (event: TurnEvent) => void;
  connected: (isConnected: boolean) => void;
}

/** Send a message and read its turn. Raises ApiError if the message is refused. */
export async function sendAndFollow(entry: OutboxEntry, observer: TurnObserver, signal: AbortSignal): Promise<void> {
  let turn = entry.turn;
  await persistently(observer, signal, async (position) => {
    const response = turn ? await eventsFrom(turn, position, signal) : await send(entry, signal);
    if (!turn) {
      turn = response.headers.get("x-turn-id") ?? "";
      observer.accepted(response.headers.get("x-conversation-id") ?? entry.conversation, turn);
    }
    return response;
  });
}

/** Read a turn from its beginning. Raises ApiError if it is not there. */
export async function follow(turn: string, observer: TurnObserver, signal: AbortSignal): Promise<void> {
  await persistently(observer, signal, (position) => eventsFrom(turn, position, signal));
}

/** Read responses one after the other until the turn has ended. */
async function persistently(
  observer: TurnObserver,
  signal: AbortSignal,
  connect: (position: string) => Promise<Response>,
): Promise<void> {
  let position = "";
  let pause = FIRST_PAUSE_MS;
  const isWanted = () => !signal.aborted;
  while (isWanted()) {
    try {
      const response = await connect(position);
      observer.connected(true);
      for await (const event of readEvents(response)) {
        pause = FIRST_PAUSE_MS;
        position = event.id || position;
        observer.event(event);
        if (event.name === "done" || event.name === "error") return;
      }
    } catch (error) {
      if (!isWanted()) return;
      if (error instanceof ApiError && !error.isTemporary) throw error;
      observer.connected(false);
    }
    await delay(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

async function send(entry: OutboxEntry, signal: AbortSignal): Promise<Response> {
  const path = entry.conversation ? `/conversations/${encodeURIComponent(entry.conversation)}/messages` : "/conversations/messages";
  const metadata = { client_message_id: entry.key, ...(entry.block && !entry.conversation ? { block: entry.block } : {}) };
  const body = JSON.stringify({ content: entry.content, metadata });
  return await checked(fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body, signal }));
}

async function eventsFrom(turn: string, position: string, signal: AbortSignal): Promise<Response> {
  const from = position ? `?from=${encodeURIComponent(position)}` : "";
  return await checked(fetch(`/api/turns/${encodeURIComponent(turn)}/events${from}`, { signal }));
}

async function checked(request: Promise<Response>): Promise<Response> {
  const response = await request;
  if (!response.ok) throw errorOf(response, await response.json().catch(() => null));
  return response;
}

function delay(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
