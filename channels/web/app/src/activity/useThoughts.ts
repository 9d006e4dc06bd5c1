/** The events of all running turns as entries, over a connection of their own while a page shows them. */
import { useEffect, useRef, useState } from "react";

import type { Envelope } from "../api/envelopes";
import { GatewaySocket } from "../api/socket";
import { afterAll, NO_THOUGHTS, type Entry, type Thoughts } from "./thoughts";

/** Milliseconds in which events are collected: a hundred a second are twenty changes of the page. */
const COLLECT_MS = 50;

/** While `isPaused`, what comes is kept and not shown. */
export function useThoughts(isPaused: boolean): { entries: Entry[]; isConnected: boolean } {
  const known = useRef<Thoughts>(NO_THOUGHTS);
  const paused = useRef(isPaused);
  const [entries, setEntries] = useState<Entry[]>([]);
  const [isConnected, setConnected] = useState(true);
  useEffect(() => {
    paused.current = isPaused;
    if (!isPaused) setEntries(known.current.entries);
  }, [isPaused]);
  useEffect(() => {
    let waiting: Envelope[] = [];
    let timer = 0;
    const take = () => {
      timer = 0;
      known.current = afterAll(known.current, waiting);
      waiting = [];
      if (!paused.current) setEntries(known.current.entries);
    };
    const socket = new GatewaySocket({
      wanted: () => {
        take();
        return { events: true, after: Object.fromEntries(known.current.positions) };
      },
      envelope: (envelope) => {
        waiting.push(envelope);
        if (timer === 0) timer = window.setTimeout(take, COLLECT_MS);
      },
      connected: setConnected,
    });
    socket.open();
    return () => {
      clearTimeout(timer);
      socket.close();
    };
  }, []);
  return { entries, isConnected };
}
