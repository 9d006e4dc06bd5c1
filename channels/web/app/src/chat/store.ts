/** The conversations that were opened in this window. Components read it and call it; it knows no component.
 *
 * Text arrives up to a hundred times a second. Readers are told once for each picture that the screen shows. */
import { api, ApiError, dataOf } from "../api/client";
import type { TurnEvent } from "../api/events";
import { follow, sendAndFollow, type TurnObserver } from "./follow";
import { turnsOf } from "./history";
import { outbox, putInOutbox, removeFromOutbox, type OutboxEntry } from "./outbox";
import { afterEvent, newTurn, type Turn } from "./turn";

export interface Conversation {
  id: string;
  title: string;
  state: "loading" | "ready" | "failed";
  failure: unknown;
  turns: Turn[];
  isConnected: boolean;
}

/** The key of the conversation that does not exist yet. */
export const NEW = "";

interface Notice {
  conversation: string;
  turn: string;
  content: string;
}

export class ChatStore {
  private readonly conversations = new Map<string, Conversation>();
  private readonly listeners = new Set<() => void>();
  private readonly followed = new Set<string>();
  private ended = new AbortController();
  private windows: BroadcastChannel | null = null;
  private frame = 0;

  constructor(private readonly onCreated: (conversation: string) => void) {}

  /** Send what was not accepted before a reload, and hear of turns that other windows begin. */
  start(): void {
    this.ended = new AbortController();
    this.windows = new BroadcastChannel("trunkline.turns");
    this.windows.onmessage = ({ data }: MessageEvent<Notice>) => this.attach(data.conversation, data.turn, data.content);
    for (const entry of outbox()) if (!entry.turn) this.deliver(entry, entry.conversation);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The conversation as it is now. The same object is returned until it changes. */
  get(id: string): Conversation {
    let found = this.conversations.get(id);
    if (found === undefined) {
      found = { id, title: "", state: id === NEW ? "ready" : "loading", failure: null, turns: [], isConnected: true };
      this.conversations.set(id, found);
    }
    return found;
  }

  /** Read a conversation, and go on reading the turns of it that are not over. */
  async load(id: string): Promise<void> {
    if (id === NEW) return;
    try {
      const path = { params: { path: { id }, query: { include: "tools" as const } } };
      const [stored, waiting] = await Promise.all([
        dataOf(api.GET("/conversations/{id}", path)),
        dataOf(api.GET("/api/approvals")).catch(() => ({ approvals: [] })),
      ]);
      this.merge(id, stored.title ?? "", turnsOf(stored.messages));
      for (const entry of outbox()) if (entry.conversation === id && entry.turn) this.attach(id, entry.turn, entry.content, entry.key);
      for (const turn of this.get(id).turns) if (turn.id && turn.phase === "running") this.attach(id, turn.id, "", turn.key);
      for (const one of waiting.approvals) if (one.conversation_id === id) this.attach(id, one.turn, "");
    } catch (failure) {
      if (this.get(id).turns.length === 0) this.change(id, { state: "failed", failure });
    }
  }

  /** Send a message. It is kept in this browser until its turn is over. */
  send(conversation: string, content: string, block: string): void {
    const entry: OutboxEntry = { key: crypto.randomUUID(), content, conversation, turn: "", block };
    putInOutbox(entry);
    this.deliver(entry, conversation);
  }

  /** Take a message that was refused off the page. Returns its text. */
  withdraw(conversation: string, key: string): string {
    const turn = this.get(conversation).turns.find((one) => one.key === key);
    this.change(conversation, { turns: this.get(conversation).turns.filter((one) => one.key !== key) });
    return turn?.questions.join("\n\n") ?? "";
  }

  rename(id: string, title: string): void {
    this.change(id, { title });
  }

  /** Show a turn that was begun elsewhere: before a reload, in another window, or as a fork. */
  attach(conversation: string, turn: string, content: string, key = turn): void {
    const turns = this.get(conversation).turns;
    const known = turns.find((one) => one.id === turn);
    if (known?.phase === "ended") removeFromOutbox(key);
    if (this.followed.has(turn) || known?.phase === "ended") return;
    if (known === undefined) this.change(conversation, { turns: [...turns, newTurn(key, turn, content, "running")] });
    this.followed.add(turn);
    const shown = known?.key ?? key;
    const observer = this.observerOf(() => conversation, shown, key);
    void follow(turn, observer, this.ended.signal).catch((error: unknown) => {
      removeFromOutbox(key);
      if (error instanceof ApiError && error.status === 404) this.changeTurn(conversation, shown, (one) => ({ ...one, phase: "ended" }));
      else this.fail(conversation, shown, error);
    });
  }

  /** Stop reading. The turns go on, and are read again by a store that starts. */
  close(): void {
    this.ended.abort();
    this.windows?.close();
    this.followed.clear();
  }

  private deliver(entry: OutboxEntry, shownIn: string): void {
    let place = shownIn;
    this.change(place, { turns: [...this.get(place).turns, newTurn(entry.key, "", entry.content, "sending")] });
    const observer: TurnObserver = {
      ...this.observerOf(() => place, entry.key),
      accepted: (conversation, turn) => {
        putInOutbox({ ...entry, conversation, turn });
        this.followed.add(turn);
        if (place === NEW) place = this.moveToOwnConversation(conversation, entry.key);
        this.changeTurn(place, entry.key, (one) => ({ ...one, id: turn, phase: "running" }));
        this.windows?.postMessage({ conversation, turn, content: entry.content } satisfies Notice);
      },
    };
    void sendAndFollow(entry, observer, this.ended.signal).catch((error: unknown) => {
      removeFromOutbox(entry.key);
      this.fail(place, entry.key, error);
    });
  }

  private moveToOwnConversation(conversation: string, key: string): string {
    const turns = this.get(NEW).turns;
    this.change(conversation, { state: "ready", turns: turns.filter((one) => one.key === key) });
    this.change(NEW, { turns: turns.filter((one) => one.key !== key) });
    this.onCreated(conversation);
    return conversation;
  }

  /** Applies events to the turn that is `shown` under a key; `sent` is the key of its message in the outbox. */
  private observerOf(place: () => string, key: string, sent = key): TurnObserver {
    return {
      accepted: () => undefined,
      event: (event: TurnEvent) => {
        this.changeTurn(place(), key, (turn) => afterEvent(turn, event, Date.now()));
        if (event.name === "done" || event.name === "error") removeFromOutbox(sent);
      },
      connected: (isConnected) => this.change(place(), { isConnected }),
    };
  }

  /** Put stored turns in place, but keep what this window knows better: the turns that it followed. */
  private merge(id: string, title: string, stored: Turn[]): void {
    const own = this.get(id).turns;
    const kept = stored.map((turn) => own.find((one) => one.id === turn.id) ?? turn);
    const open = own.filter((turn) => !stored.some((one) => one.id === turn.id));
    this.change(id, { state: "ready", failure: null, title, turns: [...kept, ...open] });
  }

  private fail(conversation: string, key: string, error: unknown): void {
    const known = error instanceof ApiError ? error : new ApiError(0, "internal", "", String(error));
    const failure = { code: known.code, reason: known.reason };
    this.changeTurn(conversation, key, (turn) => ({ ...turn, phase: "ended", finish: "error", failure }));
    if (known.status === 401) window.dispatchEvent(new Event("trunkline:signed-out"));
  }

  private changeTurn(conversation: string, key: string, change: (turn: Turn) => Turn): void {
    const turns = this.get(conversation).turns.map((turn) => (turn.key === key ? change(turn) : turn));
    this.change(conversation, { turns });
  }

  private change(id: string, changes: Partial<Conversation>): void {
    this.conversations.set(id, { ...this.get(id), ...changes });
    if (this.frame !== 0) return;
    this.frame = nextFrame(() => {
      this.frame = 0;
      for (const listener of this.listeners) listener();
    });
  }
}

/** Call back with the next picture, and soon also in a window that shows none. */
function nextFrame(call: () => void): number {
  if (document.visibilityState === "visible") return requestAnimationFrame(call);
  setTimeout(call, 100);
  return -1;
}
