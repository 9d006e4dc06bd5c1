/** The gateway's WebSocket: connects again by itself, and then asks again for what is watched. */
import type { Envelope } from "./envelopes";

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;
const PING_MS = 20_000;

/** What is watched: a conversation, or the states of everything. */
export interface Subscription {
  conversation?: string;
  /** With the states of everything: also the events of all running turns. */
  events?: boolean;
  /** The positions after which the events of turns go on. With a conversation it is one turn, and all after it follow. */
  after?: Record<string, string>;
}

export interface SocketObserver {
  /** What to watch now, or null. It is asked at each connection. */
  wanted: () => Subscription | null;
  envelope: (envelope: Envelope) => void;
  connected: (isConnected: boolean) => void;
}

export class GatewaySocket {
  private socket: WebSocket | null = null;
  private subscription = "";
  private isOpen = false;
  private pause = FIRST_PAUSE_MS;
  private timer = 0;

  constructor(private readonly observer: SocketObserver) {}

  open(): void {
    this.isOpen = true;
    this.connect();
  }

  close(): void {
    this.isOpen = false;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Watch what is wanted now instead of what was wanted before. */
  renew(): void {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (this.subscription) this.send("unsubscribe", { subscription: this.subscription });
    const wanted = this.observer.wanted();
    this.subscription = wanted === null ? "" : this.send("subscribe", { ...wanted });
  }

  private connect(): void {
    const socket = new WebSocket(`${window.location.origin.replace(/^http/, "ws")}/ws`, "trunkline.v1");
    this.socket = socket;
    socket.onopen = () => {
      this.pause = FIRST_PAUSE_MS;
      this.subscription = "";
      this.observer.connected(true);
      this.renew();
      this.ping(socket);
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => this.observer.envelope(JSON.parse(data) as Envelope);
    socket.onclose = () => {
      clearTimeout(this.timer);
      if (!this.isOpen) return;
      this.observer.connected(false);
      this.timer = window.setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    };
  }

  /** Ask for a pong now and then: a network that was lost silently is noticed when something is sent. */
  private ping(socket: WebSocket): void {
    this.timer = window.setTimeout(() => {
      if (socket.readyState !== WebSocket.OPEN) return;
      this.send("ping", {});
      this.ping(socket);
    }, PING_MS);
  }

  private send(type: string, payload: Record<string, unknown>): string {
    const id = newId();
    this.socket?.send(JSON.stringify({ type, id, timestamp: new Date().toISOString(), payload }));
    return id;
  }
}

/** A new id. `crypto.randomUUID` is missing on pages without TLS that are not this machine's. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
