/** The conversations that were opened in this window. Components read it and call it; it knows no component.
 *
 * Text arrives up to a hundred times a second. Readers are told once for each picture that the screen shows. */
import { api, ApiError, dataOf, type Schemas } from "../api/client";
import { isTurnEvent, type Envelope, type TurnEvent } from "../api/envelopes";
import { GatewaySocket, newId, type Subscription } from "../api/socket";
import { deliver, type Accepted } from "./deliver";
import { turnsOf } from "./history";
import { outbox, putInOutbox, removeFromOutbox, type NewMessage, type OutboxEntry } from "./outbox";
import { afterEvent, newTurn, type Turn } from "./turn";

export interface Conversation {
  id: string;
  title: string;
  /** The block that it belongs to; "" until that is known. */
  block: string;
  state: "loading" | "ready" | "failed";
  failure: unknown;
  turns: Turn[];
  isConnected: boolean;
}

/** The key of the conversation that does not exist yet. */
export const NEW = "";

export class ChatStore {
  private readonly conversations = new Map<string, Conversation>();
  private readonly outlines = new Map<string, Conversation>();
  private readonly listeners = new Set<() => void>();
  private readonly socket: GatewaySocket;
  private ended = new AbortController();
  private watched = NEW;
  /** The ids of the events of each turn that runs: two subscriptions, one after the other, may send the same. */
  private readonly seen = new Map<string, Set<string>>();
  private frame = 0;
  /** The turn of the branch that a person is stepping to; "" if none. */
  private stepTarget = "";
  /** The conversations that are being read, and whether somebody asked again meanwhile. */
  private readonly loading = new Map<string, boolean>();

  constructor(private readonly onCreated: (conversation: string) => void) {
    this.socket = new GatewaySocket({
      wanted: () => this.wanted(),
      envelope: (envelope) => this.receive(envelope),
      connected: (isConnected) => this.connected(isConnected),
    });
  }

  /** Connect, and send what was not accepted before a reload. */
  start(): void {
    this.ended = new AbortController();
    this.socket.open();
    for (const entry of outbox()) if (!entry.turn) this.deliver(entry, entry.conversation);
  }

  /** Disconnect. Turns go on without a reader. */
  close(): void {
    this.ended.abort();
    this.socket.close();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The conversation as it is now. The same object is returned until it changes. */
  get(id: string): Conversation {
    let found = this.conversations.get(id);
    if (found === undefined) {
      found = { id, title: "", block: "", state: id === NEW ? "ready" : "loading", failure: null, turns: [], isConnected: true };
      this.conversations.set(id, found);
    }
    return found;
  }

  /** The conversation for those who show no answers: the same object while an answer grows. */
  outline(id: string): Conversation {
    const [now, before] = [this.get(id), this.outlines.get(id)];
    if (before !== undefined && hasSameOutline(before, now)) return before;
    this.outlines.set(id, now);
    return now;
  }

  /** Show a conversation, and watch it instead of the one before. */
  watch(id: string): void {
    this.watched = id;
    this.socket.renew();
    void this.load(id);
  }

  /** Read what is stored of a conversation: once at a time, and once more if it was asked for meanwhile. */
  async load(id: string): Promise<void> {
    if (id === NEW) return;
    if (this.loading.has(id)) {
      this.loading.set(id, true);
      return;
    }
    do {
      this.loading.set(id, false);
      await this.read(id);
    } while (this.loading.get(id));
    this.loading.delete(id);
  }

  private async read(id: string): Promise<void> {
    try {
      const path = { params: { path: { id }, query: { include: "tools" as const } } };
      const stored = await dataOf(api.GET("/conversations/{id}", path));
      const before = this.openTurn(id)?.id;
      this.merge(id, stored, turnsOf(stored.messages));
      if (this.watched === id && this.openTurn(id)?.id !== before) this.socket.renew();
    } catch (failure) {
      noteSignOut(failure);
      if (this.get(id).turns.length === 0) this.change(id, { state: "failed", failure });
    }
  }

  /** Send a message. It is kept in this browser until its turn is over. */
  send(conversation: string, message: NewMessage): void {
    const entry: OutboxEntry = { key: newId(), conversation, turn: "", ...message };
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

  /** A person steps to the branch with this turn, in another conversation. */
  beginStep(turn: string): void {
    this.stepTarget = turn;
  }

  /** Whether a person stepped to this turn. The step ends there. */
  endStep(turn: string): boolean {
    const isHere = turn !== "" && this.stepTarget === turn;
    if (isHere) this.stepTarget = "";
    return isHere;
  }

  /** Show a turn that was begun as a fork. */
  attach(conversation: string, turn: string, content: string): void {
    this.change(conversation, { turns: [...this.get(conversation).turns, newTurn(turn, turn, content, "running")] });
  }

  /** The watched conversation, from the first turn that is not over on. */
  private wanted(): Subscription | null {
    if (this.watched === NEW) return null;
    const open = this.openTurn(this.watched);
    return { conversation: this.watched, after: open === undefined ? {} : { [open.id]: open.position } };
  }

  private openTurn(id: string): Turn | undefined {
    return this.get(id).turns.find((turn) => turn.id !== "" && turn.phase !== "ended");
  }

  private connected(isConnected: boolean): void {
    this.change(this.watched, { isConnected });
    if (isConnected) void this.load(this.watched);
    else void dataOf(api.GET("/api/blocks")).catch(noteSignOut); // a handshake does not say why it was refused
  }

  private receive(envelope: Envelope): void {
    if (isTurnEvent(envelope)) {
      if (this.isNew(envelope.payload.turn, envelope.id)) this.apply(envelope);
    } else if (envelope.type === "error" && envelope.payload["subscription"]) this.giveUpOldTurns();
  }

  private isNew(turn: string, event: string): boolean {
    const seen = this.seen.get(turn) ?? new Set();
    this.seen.set(turn, seen);
    return !seen.has(event) && Boolean(seen.add(event));
  }

  private apply(event: TurnEvent): void {
    const { conversation, turn: id } = event.payload;
    const { turns } = this.get(conversation);
    const known = turns.find((one) => one.id === id);
    if (known?.phase === "ended") return; // it is sent again with a turn before it
    const turn = afterEvent(known ?? newTurn(id, id, "", "running"), event, Date.now());
    if (known === undefined) {
      this.change(conversation, { turns: [...turns, turn] });
      void this.load(conversation); // for the message, which somebody else sent
    } else this.changeTurn(conversation, known.key, () => turn);
    if (event.type === "turn_ended") {
      this.seen.delete(id);
      for (const entry of outbox()) if (entry.turn === id) removeFromOutbox(entry.key);
    }
  }

  /** The events of a turn that is not over are gone: it ended long ago, without an answer. */
  private giveUpOldTurns(): void {
    const turns = this.get(this.watched).turns.map((turn) => (turn.id ? { ...turn, phase: "ended" as const } : turn));
    this.change(this.watched, { turns });
    this.socket.renew();
  }

  private deliver(entry: OutboxEntry, place: string): void {
    this.change(place, { turns: [...this.get(place).turns, newTurn(entry.key, "", entry.content, "sending", namesOf(entry))] });
    deliver(entry, () => this.change(place, { isConnected: false }), this.ended.signal).then(
      (accepted) => {
        if (accepted !== null) this.accept(entry, place, accepted);
      },
      (error: unknown) => {
        removeFromOutbox(entry.key);
        this.refuse(place, entry.key, error);
      },
    );
  }

  private accept(entry: OutboxEntry, place: string, { conversation, turn: id }: Accepted): void {
    putInOutbox({ ...entry, conversation, turn: id });
    const mine = this.get(place).turns.find((turn) => turn.key === entry.key) ?? newTurn(entry.key, "", entry.content, "sending", namesOf(entry));
    if (place !== conversation) this.change(place, { turns: this.get(place).turns.filter((turn) => turn !== mine) });
    const { turns } = this.get(conversation);
    const early = turns.find((turn) => turn.id === id); // its first events may be faster than the reply
    const isFirst = turns.every((turn) => turn === mine || turn === early || turn.phase === "ended");
    const accepted: Turn = { ...(early ?? { ...mine, phase: isFirst ? "running" : "waiting" }), key: entry.key, id, questions: mine.questions, files: mine.files };
    this.change(conversation, { state: "ready", isConnected: true, turns: [...turns.filter((turn) => turn !== mine && turn !== early), accepted] });
    if (place === NEW) this.onCreated(conversation);
  }

  /** Put stored turns in place, but keep what this window knows better: the turns whose events it has. */
  private merge(id: string, { title, block }: Pick<Schemas["ConversationDetail"], "title" | "block">, stored: Turn[]): void {
    const own = this.get(id).turns;
    const ownById = new Map(own.map((turn) => [turn.id, turn])); // a long conversation has thousands
    const storedIds = new Set(stored.map((turn) => turn.id));
    const kept = stored.map((turn) => {
      const mine = ownById.get(turn.id);
      if (mine === undefined || (mine.parts.length === 0 && turn.parts.length > 0)) return { ...turn, key: mine?.key ?? turn.key };
      return mine.questions.length > 0 ? mine : { ...mine, questions: turn.questions, files: turn.files };
    });
    const others = own.filter((turn) => !storedIds.has(turn.id));
    for (const entry of outbox().filter((one) => one.conversation === id && one.turn)) {
      const found = [...kept, ...others].find((turn) => turn.id === entry.turn);
      if (found === undefined) others.push(newTurn(entry.key, entry.turn, entry.content, "running", namesOf(entry)));
      else if (found.phase === "ended") removeFromOutbox(entry.key);
    }
    this.change(id, { state: "ready", failure: null, title: title ?? "", block: block ?? "", turns: [...kept, ...others] });
  }

  private refuse(conversation: string, key: string, error: unknown): void {
    const known = error instanceof ApiError ? error : new ApiError(0, "internal", "", String(error));
    const failure = { code: known.code, reason: known.reason };
    this.changeTurn(conversation, key, (turn) => ({ ...turn, phase: "ended", finish: "error", failure }));
    noteSignOut(known);
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

/** Whether at most the parts of turns differ. */
function hasSameOutline(one: Conversation, other: Conversation): boolean {
  return (
    one.title === other.title &&
    one.block === other.block &&
    one.state === other.state &&
    one.failure === other.failure &&
    one.isConnected === other.isConnected &&
    one.turns.length === other.turns.length &&
    one.turns.every((turn, index) => hasSamePlace(turn, other.turns[index]))
  );
}

function hasSamePlace(one: Turn, other: Turn | undefined): boolean {
  return one === other || (one.key === other?.key && one.id === other.id && one.phase === other.phase && one.questions === other.questions);
}

function namesOf(entry: OutboxEntry): string[] {
  return entry.files.map((file) => file.name);
}

/** Tell the frame if a request failed because the session is over. */
function noteSignOut(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) window.dispatchEvent(new Event("trunkline:signed-out"));
}

/** Call back with the next picture, and soon also in a window that shows none. */
function nextFrame(call: () => void): number {
  if (document.visibilityState === "visible") return requestAnimationFrame(call);
  setTimeout(call, 100);
  return -1;
}
