/** The messages whose turns are not over, kept in this browser: a reload sends them again or goes on reading. Sending a
 * message again is safe, because the gateway knows it by its key. */
import { load, save } from "../storage";

export interface NewMessage {
  content: string;
  /** Uploaded files. */
  files: { id: string; name: string }[];
  /** The block of a new conversation; "" for the one that the gateway chooses. */
  block: string;
}

export interface OutboxEntry extends NewMessage {
  key: string;
  /** "" until the gateway has given the conversation and the turn their ids. */
  conversation: string;
  turn: string;
}

const KEY = "outbox";

export function outbox(): OutboxEntry[] {
  return load<OutboxEntry[]>(KEY, []);
}

export function putInOutbox(entry: OutboxEntry): void {
  save(KEY, [...outbox().filter((one) => one.key !== entry.key), entry]);
}

export function removeFromOutbox(key: string): void {
  const left = outbox().filter((one) => one.key !== key);
  save(KEY, left.length > 0 ? left : null);
}
