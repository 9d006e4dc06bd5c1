/** What can be done with a turn that is over: copy the answer, ask again, change the message. */
import { useState } from "react";

import { api, dataOf } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf, goTo } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { useChatStore } from "./ChatContext";
import { saveDraft } from "./drafts";
import { textOf, type Turn } from "./turn";

export function TurnActions({ conversation, turn }: { conversation: string; turn: Turn }) {
  const t = useTexts();
  const store = useChatStore();
  const mayChat = useMay("chat");
  const [failure, setFailure] = useState<unknown>(null);
  const [edited, setEdited] = useState<string | null>(null);
  const question = turn.questions.join("\n\n");
  const text = textOf(turn);
  const fork = (content: string | null) => {
    const path = { path: { id: turn.id } };
    dataOf(api.POST("/api/turns/{id}/fork", { params: path, body: { step: 0, content } })).then(
      (accepted) => {
        store.attach(accepted.conversation_id, accepted.turn, content ?? question);
        goTo("chat", accepted.conversation_id);
      },
      (error: unknown) => setFailure(error),
    );
  };
  if (turn.id === "") {
    return (
      <Button onClick={() => saveDraft(conversation, store.withdraw(conversation, turn.key))}>{t("chat.takeBack")}</Button>
    );
  }
  return (
    <div className="turn-actions">
      {text && <CopyButton text={text} label={t("chat.copy")} />}
      {mayChat && (
        <Button kind="icon" onClick={() => fork(null)}>
          {t("chat.again")}
        </Button>
      )}
      {mayChat && question && (
        <Button kind="icon" onClick={() => setEdited(question)}>
          {t("chat.edit")}
        </Button>
      )}
      {turn.id.startsWith("turn_") && (
        <a className="dim" href={addressOf("activity", "trace", turn.id)}>{t("activity.trace")}</a>
      )}
      {turn.usage && (
        <span className="dim">{t("chat.tokens", { in: turn.usage.prompt_tokens, out: turn.usage.completion_tokens })}</span>
      )}
      {turn.cost !== null && turn.cost > 0 && <span className="dim">{t("chat.cost", { dollars: turn.cost.toFixed(4) })}</span>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {edited !== null && (
        <Dialog title={t("chat.edit")} submit={t("chat.send")} onClose={() => setEdited(null)} onSubmit={() => fork(edited)}>
          <p className="dim">{t("chat.edit.how")}</p>
          <textarea aria-label={t("chat.message")} rows={6} value={edited} onChange={(event) => setEdited(event.target.value)} />
        </Dialog>
      )}
    </div>
  );
}
