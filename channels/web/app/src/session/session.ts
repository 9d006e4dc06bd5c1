/** Whether this browser is signed in, and as whom. The session is a cookie that no script can read. */
import { useCallback, useEffect, useState } from "react";

import { api, ApiError, dataOf, type Schemas } from "../api/client";
import { forget } from "../storage";
import { browserName } from "./browser";

export type Session =
  | { state: "unknown" | "out" | "unreachable"; me: null }
  | { state: "in"; me: Schemas["Me"] };

const RETRY_MS = 2000;
/** Asking who is signed in renews the session. */
const RENEW_MS = 10 * 60_000;

interface SessionActions {
  refresh: () => void;
  signOut: () => Promise<void>;
}

export function useSession(): Session & SessionActions {
  const [session, setSession] = useState<Session>({ state: "unknown", me: null });
  const refresh = useCallback(() => {
    void currentSession().then(setSession);
  }, []);
  useEffect(refresh, [refresh]);
  useEffect(() => {
    if (session.state === "out") return;
    const timer = setInterval(refresh, session.state === "in" ? RENEW_MS : RETRY_MS);
    return () => clearInterval(timer);
  }, [session.state, refresh]);
  useEffect(() => {
    window.addEventListener("trunkline:signed-out", refresh);
    return () => window.removeEventListener("trunkline:signed-out", refresh);
  }, [refresh]);
  const signOut = useCallback(async () => {
    await dataOf(api.POST("/api/sign-out"));
    forget();
    setSession({ state: "out", me: null });
  }, []);
  return { ...session, refresh, signOut };
}

/** Exchange a code of `trunkline pair` for a session. Raises ApiError. */
export async function pair(code: string): Promise<void> {
  await dataOf(api.POST("/api/pair", { body: { code, as: "cookie", label: browserName() } }));
}

async function currentSession(): Promise<Session> {
  try {
    return { state: "in", me: await dataOf(api.GET("/api/me")) };
  } catch (error) {
    const isOut = error instanceof ApiError && error.status === 401;
    return { state: isOut ? "out" : "unreachable", me: null };
  }
}
