/** What was typed and not sent, for each conversation. It survives a reload, and other windows see it. */
import { useCallback, useEffect, useState } from "react";

import { load, save } from "../storage";

const CHANGED = "trunkline:draft";

export function saveDraft(conversation: string, text: string): void {
  save(keyOf(conversation), text);
  window.dispatchEvent(new CustomEvent(CHANGED, { detail: conversation }));
}

export function useDraft(conversation: string): [string, (text: string) => void] {
  const [draft, setDraft] = useState(() => load(keyOf(conversation), ""));
  useEffect(() => {
    const changed = (event: Event) => {
      if ((event as CustomEvent<string>).detail === conversation) setDraft(load(keyOf(conversation), ""));
    };
    window.addEventListener(CHANGED, changed);
    return () => window.removeEventListener(CHANGED, changed);
  }, [conversation]);
  const change = useCallback(
    (text: string) => {
      setDraft(text);
      save(keyOf(conversation), text);
    },
    [conversation],
  );
  return [draft, change];
}

function keyOf(conversation: string): string {
  return `draft.${conversation || "new"}`;
}
