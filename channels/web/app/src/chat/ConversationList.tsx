/** The conversations of all channels: the pinned ones, then the others, newest first. A search looks into archived ones,
 * too. */
import { useState } from "react";

import type { Schemas } from "../api/client";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { ConversationMenu } from "./ConversationMenu";
import { useConversations } from "./useConversations";

type Item = Schemas["ConversationItem"];

export function ConversationList({ current, onChosen }: { current: string; onChosen: () => void }) {
  const t = useTexts();
  const [search, setSearch] = useState("");
  const [isArchive, setArchive] = useState(false);
  const { pinned, items, total, failure, more, refresh } = useConversations(search, isArchive, current);
  const rows = (shown: Item[]) => (
    <ul>
      {shown.map((item) => (
        <Row key={item.id} item={item} isCurrent={item.id === current} onChosen={onChosen} onChanged={refresh} />
      ))}
    </ul>
  );
  return (
    <aside className="conversation-list" aria-label={t("chat.conversations")}>
      <a className="button button-primary" href={addressOf("chat")} onClick={onChosen}>
        {t("chat.new")}
      </a>
      <input type="search" aria-label={t("chat.search")} placeholder={t("chat.search")} value={search} onChange={(event) => setSearch(event.target.value)} />
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {pinned.length > 0 && (
        <section aria-label={t("chat.pinned")}>
          <h2 className="dim">{t("chat.pinned")}</h2>
          {rows(pinned)}
        </section>
      )}
      {rows(items)}
      {items.length + pinned.length === 0 && failure === null && (
        <p className="dim">{t(search ? "chat.noMatch" : isArchive ? "chat.noArchived" : "chat.none")}</p>
      )}
      {items.length < total && <Button onClick={more}>{t("chat.more")}</Button>}
      <Button kind="icon" className="archive-button" aria-pressed={isArchive} onClick={() => setArchive(!isArchive)}>
        {t("chat.archived")}
      </Button>
    </aside>
  );
}

function Row({ item, isCurrent, onChosen, onChanged }: { item: Item; isCurrent: boolean; onChosen: () => void; onChanged: () => void }) {
  const { t, locale } = useLanguage();
  return (
    <li>
      <a href={addressOf("chat", item.id)} aria-current={isCurrent ? "true" : undefined} onClick={onChosen}>
        <span className="list-title">{item.title ?? item.id}</span>
        <span className="dim">
          <time dateTime={item.updated_at}>
            {new Date(item.updated_at).toLocaleString(locale, { dateStyle: "short", timeStyle: "short" })}
          </time>
          {item.forked_from && ` · ${t("chat.fork")}`}
          {item.archived && ` · ${t("chat.isArchived")}`}
        </span>
      </a>
      <ConversationMenu item={item} onChanged={onChanged} />
    </li>
  );
}
