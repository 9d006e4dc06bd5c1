/** Data that is asked for once, and again when the question changes or somebody asks. */
import { useCallback, useEffect, useState } from "react";

export interface Loaded<T> {
  data: T | null;
  failure: unknown;
  reload: () => void;
}

/** `ask` must be the same function until the question changes. */
export function useLoaded<T>(ask: () => Promise<T>): Loaded<T> {
  const [result, setResult] = useState<{ of: unknown; data: T | null; failure: unknown }>({ of: null, data: null, failure: null });
  const [count, setCount] = useState(0);
  useEffect(() => {
    let isWanted = true;
    ask().then(
      (data) => { if (isWanted) setResult({ of: ask, data, failure: null }); },
      (failure: unknown) => { if (isWanted) setResult({ of: ask, data: null, failure }); },
    );
    return () => {
      isWanted = false;
    };
  }, [ask, count]);
  const reload = useCallback(() => setCount((before) => before + 1), []);
  const isOld = result.of !== ask;
  return { data: isOld ? null : result.data, failure: isOld ? null : result.failure, reload };
}
