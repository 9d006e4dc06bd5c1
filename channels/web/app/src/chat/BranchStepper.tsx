/** Steps through the branches of a place: what was asked or answered there instead. */
import { useEffect, useRef } from "react";

import { useTexts } from "../i18n";
import { goTo } from "../router";
import { Button } from "../ui/Button";
import { useChatStore } from "./ChatContext";
import type { Branch } from "./useBranches";

/** `turn` is the turn that is shown. */
export function BranchStepper({ branches, turn }: { branches: Branch[]; turn: string }) {
  const t = useTexts();
  const store = useChatStore();
  const group = useRef<HTMLDivElement>(null);
  const at = branches.findIndex((branch) => branch.turn_id === turn);
  useEffect(() => {
    // Whoever came by a step goes on from here; the buttons of the other conversation are gone.
    if (store.endStep(turn)) group.current?.focus({ preventScroll: true });
  }, [store, turn]);
  if (at < 0) return null;
  const step = (by: -1 | 1) => {
    const branch = branches[at + by];
    if (branch === undefined) return;
    store.beginStep(branch.turn_id);
    goTo("chat", branch.conversation_id, { part: branch.turn_id });
  };
  const name = t("chat.branch", { at: at + 1, count: branches.length });
  return (
    // The group takes the arrow keys for the buttons in it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={group}
      className="branch-stepper"
      role="group"
      aria-label={name}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") step(-1);
        if (event.key === "ArrowRight") step(1);
      }}
    >
      <Button kind="icon" aria-label={t("chat.branch.before")} disabled={at === 0} onClick={() => step(-1)}>
        ‹
      </Button>
      <span aria-hidden="true">
        {at + 1}/{branches.length}
      </span>
      <Button kind="icon" aria-label={t("chat.branch.next")} disabled={at === branches.length - 1} onClick={() => step(1)}>
        ›
      </Button>
    </div>
  );
}
