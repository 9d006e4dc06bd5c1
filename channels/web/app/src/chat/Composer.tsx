/** The field for messages: send, stop, steer. What is typed is kept for each conversation. */
import { useEffect, useRef, useState, type KeyboardEvent, type SyntheticEvent } from "react";

import { api, dataOf } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { BlockChoice } from "./BlockChoice";
import { useChatStore } from "./ChatContext";
import { useDraft } from "./drafts";
import { NEW, type Conversation } from "./store";

export function Composer({ conversation }: { conversation: Conversation }) {
  const t = useTexts();
  const store = useChatStore();
  const field = useRef<HTMLTextAreaElement>(null);
  const [draft, setDraft] = useDraft(conversation.id);
  const [block, setBlock] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const running = conversation.turns.find((turn) => turn.id !== "" && turn.phase !== "ended");
  useEffect(() => {
    if (window.matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, []);
  const send = () => {
    const content = draft.trim();
    if (!content) return;
    store.send(conversation.id, content, block);
    setDraft("");
  };
  const steer = (turn: string) => {
    const content = draft.trim();
    if (!content) return;
    const request = api.POST("/api/turns/{id}/steer", { params: { path: { id: turn } }, body: { content } });
    dataOf(request).then(() => setDraft(""), setFailure);
  };
  const stop = (turn: string) => {
    dataOf(api.POST("/api/turns/{id}/cancel", { params: { path: { id: turn } }, body: {} })).catch(setFailure);
  };
  return (
    <form className="composer" onSubmit={(event: SyntheticEvent) => { event.preventDefault(); send(); }}>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <Permitted scope="chat">
        {conversation.id === NEW && <BlockChoice block={block} onChange={setBlock} />}
        <textarea
          ref={field}
          aria-label={t("chat.message")}
          placeholder={t("chat.placeholder")}
          rows={1}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => { if (isSendKey(event)) { event.preventDefault(); send(); } }}
        />
        <div className="composer-buttons">
          {running && (
            <>
              <Button kind="danger" onClick={() => stop(running.id)}>{t("chat.stop")}</Button>
              <Button disabled={!draft.trim()} onClick={() => steer(running.id)} title={t("chat.steer.how")}>{t("chat.steer")}</Button>
            </>
          )}
          <Button kind="primary" type="submit" disabled={!draft.trim()}>{t(running ? "chat.queue" : "chat.send")}</Button>
        </div>
      </Permitted>
    </form>
  );
}

/** Enter sends where there is a keyboard; on a phone, and with Shift, it begins a line. */
function isSendKey(event: KeyboardEvent): boolean {
  const hasKeyboard = window.matchMedia("(pointer: fine)").matches;
  return event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && hasKeyboard;
}
