/** The chat: the list of conversations, and the one that the address names. */
import { useEffect, useState } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import "../styles/chat.css";
import { useChatStore, useConversation, useConversationOutline } from "./ChatContext";
import { Composer } from "./Composer";
import { ConversationHead } from "./ConversationHead";
import { ConversationList } from "./ConversationList";
import { NEW } from "./store";
import { TurnList } from "./TurnList";
import { prepareAnswers } from "./TurnView";

export default function ChatPage({ name, part }: { name: string; part: string }) {
  const t = useTexts();
  const [listed, setListed] = useState(false);
  useEffect(prepareAnswers, []);
  const conversation = useConversationOutline(name);
  return (
    <div className="chat" data-listed={listed}>
      <ConversationList current={name} onChosen={() => setListed(false)} />
      <section className="conversation" aria-label={conversation.title || t("chat.new")}>
        <ConversationHead conversation={conversation} onList={() => setListed(!listed)} isListed={listed} />
        <ConversationBody id={name} turn={part} />
        <Composer key={name} conversation={conversation} />
      </section>
    </div>
  );
}

/** `turn` is the id of the turn to show first; "" for the newest. */
function ConversationBody({ id, turn }: { id: string; turn: string }) {
  const t = useTexts();
  const store = useChatStore();
  const conversation = useConversation(id);
  const mayOperate = useMay("operate");
  if (conversation.state === "failed") {
    return (
      <div className="turns">
        <Notice kind="error">{sentence(t, conversation.failure)}</Notice>
        <Button onClick={() => void store.load(id)}>{t("error.retry")}</Button>
      </div>
    );
  }
  if (conversation.state === "loading" && conversation.turns.length === 0) {
    return <p className="turns waiting">{t("app.loading")}</p>;
  }
  if (id === NEW && conversation.turns.length === 0) {
    return (
      <div className="turns welcome">
        <h1>{t("chat.welcome")}</h1>
        <p className="dim">{t("chat.welcome.how")}</p>
        {mayOperate && <p><a href={addressOf("setup")}>{t("setup.title")}</a></p>}
      </div>
    );
  }
  return <TurnList conversation={conversation} shown={turn} />;
}
