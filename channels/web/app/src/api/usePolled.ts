/** Data that is asked for again and again while the window is looked at. */
import { useCallback, useEffect, useState } from "react";

export function usePolled<T>(ask: () => Promise<T>, everyMs: number): { data: T | null; failure: unknown; refresh: () => void } {
  const [result, setResult] = useState<{ data: T | null; failure: unknown }>({ data: null, failure: null });
  const refresh = useCallback(() => {
    ask().then(
      (data) => setResult({ data, failure: null }),
      (failure: unknown) => setResult((before) => ({ ...before, failure })),
    );
  }, [ask]);
  useEffect(() => {
    refresh();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") refresh();
    }, everyMs);
    return () => clearInterval(timer);
  }, [refresh, everyMs]);
  return { ...result, refresh };
}
