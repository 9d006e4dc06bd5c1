/** The title of a conversation, and the model that answers in it with how much of its context is in use. */
import { useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { BlockMark } from "../blocks/BlockMark";
import { useTexts } from "../i18n";
import { Button } from "../ui/Button";
import { ModelMenu } from "./ModelMenu";
import { NEW, type Conversation } from "./store";

interface Props {
  conversation: Conversation;
  isListed: boolean;
  onList: () => void;
}

export function ConversationHead({ conversation, isListed, onList }: Props) {
  const t = useTexts();
  const { id } = conversation;
  const isRead = id !== NEW && conversation.state === "ready"; // the conversation is read first
  const ended = conversation.turns.filter((turn) => turn.phase === "ended").length;
  return (
    <header className="conversation-head">
      <Button kind="icon" className="list-button" aria-expanded={isListed} onClick={onList}>
        {t("chat.conversations")}
      </Button>
      {conversation.block && <BlockName key={conversation.block} block={conversation.block} />}
      <h1>{conversation.title || t("chat.new")}</h1>
      {isRead && ended > 0 && <ContextUse key={`${id}/${ended}`} id={id} />}
      {isRead && <ModelMenu key={id} conversation={id} />}
    </header>
  );
}

/** The block of the conversation, as people know it: colour, emoji and name. */
function BlockName({ block }: { block: string }) {
  const [config, setConfig] = useState<Schemas["BlockConfig"]>({});
  useEffect(() => {
    // A block that was archived or deleted has a name and nothing else.
    dataOf(api.GET("/api/blocks/{name}", { params: { path: { name: block } } })).then((found) => setConfig(found.config), () => setConfig({}));
  }, [block]);
  return (
    <span className="block-name">
      <BlockMark config={config} />
      {block}
    </span>
  );
}

function ContextUse({ id }: { id: string }) {
  const t = useTexts();
  const [context, setContext] = useState<Schemas["ConversationContext"] | null>(null);
  useEffect(() => {
    // A conversation without a model call has none.
    dataOf(api.GET("/api/conversations/{id}/context", { params: { path: { id } } })).then(setContext, () => setContext(null));
  }, [id]);
  if (!context?.context_window) return null;
  const used = context.parts.reduce((sum, part) => sum + part.tokens, 0);
  const share = Math.round((100 * used) / context.context_window);
  return <span className="dim context-use">{t("chat.context", { share, tokens: used })}</span>;
}
