/** Whether this browser is signed in. The session is a cookie that no script can read. */
import { useCallback, useEffect, useState } from "react";

import { ApiError, errorOf } from "../api/client";
import { forget } from "../storage";

export type SessionState = "unknown" | "in" | "out" | "unreachable";

const RETRY_MS = 2000;

export function useSession(): { state: SessionState; refresh: () => void; signOut: () => Promise<void> } {
  const [state, setState] = useState<SessionState>("unknown");
  const refresh = useCallback(() => {
    void currentState().then(setState);
  }, []);
  useEffect(refresh, [refresh]);
  useEffect(() => {
    if (state !== "unreachable") return;
    const timer = setInterval(refresh, RETRY_MS);
    return () => clearInterval(timer);
  }, [state, refresh]);
  useEffect(() => {
    window.addEventListener("trunkline:signed-out", refresh);
    return () => window.removeEventListener("trunkline:signed-out", refresh);
  }, [refresh]);
  const signOut = useCallback(async () => {
    await send("/api/sign-out", {});
    forget();
    setState("out");
  }, []);
  return { state, refresh, signOut };
}

/** Exchange a code of `trunkline pair` for a session. */
export async function pair(code: string): Promise<void> {
  const response = await send("/api/pair", { code, as: "cookie", label: navigator.userAgent.slice(0, 80) });
  if (!response.ok) throw errorOf(response, await response.json().catch(() => null));
}

async function currentState(): Promise<SessionState> {
  const response = await fetch("/api/blocks").catch(() => null);
  if (response === null || response.status >= 500) return "unreachable";
  return response.status === 401 ? "out" : "in";
}

async function send(path: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  try {
    return await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "unreachable", "", "");
  }
}
