/** The turns of a conversation. Only those near the visible part are in the page. New text is followed while the reader
 * is at the end, and never pulls a reader who scrolled up. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useRef } from "react";

import { useTexts } from "../i18n";
import { Notice } from "../ui/Notice";
import { useConversationOutline } from "./ChatContext";
import type { Conversation } from "./store";
import { TurnView } from "./TurnView";
import { useBranches } from "./useBranches";

const NEAR_END = 80;

/** `shown` is the id of the turn to go to; "" for the end. */
export function TurnList({ conversation, shown }: { conversation: Conversation; shown: string }) {
  const t = useTexts();
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const { turns } = conversation;
  const branches = useBranches(conversation);
  const outline = useConversationOutline(conversation.id);
  // With another function the places of all turns are computed again.
  const getItemKey = useCallback((index: number) => outline.turns[index]?.key ?? index, [outline]);
  // eslint-disable-next-line react-hooks/incompatible-library -- React's compiler is not used
  const virtual = useVirtualizer({
    count: turns.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: () => 200,
    overscan: 4,
  });
  const height = virtual.getTotalSize();
  useEffect(() => {
    isAtEnd.current = true;
  }, [conversation.id]);
  const at = shown ? turns.findIndex((turn) => turn.id === shown) : -1;
  useEffect(() => {
    if (at < 0) return;
    isAtEnd.current = false;
    virtual.scrollToIndex(at, { align: "start" });
  }, [virtual, conversation.id, at]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [height, conversation.id]);
  const note = () => {
    const element = scroller.current;
    if (element === null) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
  };
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={scroller} className="turns" role="log" aria-label={t("chat.log")} aria-live="off" tabIndex={0} onScroll={note}>
      <div className="turns-inner" style={{ height }}>
        {virtual.getVirtualItems().map((item) => {
          const turn = turns[item.index];
          return turn === undefined ? null : (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              className="turn-slot"
              data-shown={item.index === at}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <TurnView conversation={conversation.id} turn={turn} branches={branches.get(turn.id)} />
            </div>
          );
        })}
      </div>
      {!conversation.isConnected && <Notice kind="error">{t("error.unreachable")}</Notice>}
    </div>
  );
}
