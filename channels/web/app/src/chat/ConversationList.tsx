/** The conversations of all channels, newest first, with search and names. */
import { useCallback, useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { useChatStore } from "./ChatContext";

type Item = Schemas["ConversationItem"];

const PAGE = 30;
const TYPING_MS = 250;

export function ConversationList({ current, onChosen }: { current: string; onChosen: () => void }) {
  const t = useTexts();
  const [search, setSearch] = useState("");
  const { items, total, failure, more, refresh } = useConversations(search, current);
  return (
    <aside className="conversation-list" aria-label={t("chat.conversations")}>
      <a className="button button-primary" href={addressOf("chat")} onClick={onChosen}>
        {t("chat.new")}
      </a>
      <input type="search" aria-label={t("chat.search")} placeholder={t("chat.search")} value={search} onChange={(event) => setSearch(event.target.value)} />
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <ul>
        {items.map((item) => (
          <Row key={item.id} item={item} isCurrent={item.id === current} onChosen={onChosen} onRenamed={refresh} />
        ))}
      </ul>
      {items.length === 0 && failure === null && <p className="dim">{t(search ? "chat.noMatch" : "chat.none")}</p>}
      {items.length < total && <Button onClick={more}>{t("chat.more")}</Button>}
    </aside>
  );
}

function Row({ item, isCurrent, onChosen, onRenamed }: { item: Item; isCurrent: boolean; onChosen: () => void; onRenamed: () => void }) {
  const { t, locale } = useLanguage();
  const store = useChatStore();
  const mayChat = useMay("chat");
  const [title, setTitle] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const rename = () => {
    const changes = { params: { path: { id: item.id } }, body: { title: title?.trim() ? title.trim() : null } };
    dataOf(api.PATCH("/conversations/{id}", changes)).then((renamed) => {
      store.rename(item.id, renamed.title ?? "");
      onRenamed();
    }, setFailure);
  };
  return (
    <li>
      <a href={addressOf("chat", item.id)} aria-current={isCurrent ? "true" : undefined} onClick={onChosen}>
        <span className="list-title">{item.title ?? item.id}</span>
        <time className="dim" dateTime={item.updated_at}>
          {new Date(item.updated_at).toLocaleString(locale, { dateStyle: "short", timeStyle: "short" })}
        </time>
      </a>
      {mayChat && (
        <Button kind="icon" aria-label={t("chat.rename", { title: item.title ?? "" })} onClick={() => setTitle(item.title ?? "")}>
          ✎
        </Button>
      )}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {title !== null && (
        <Dialog title={t("chat.rename.title")} submit={t("ui.save")} onClose={() => setTitle(null)} onSubmit={rename}>
          <input aria-label={t("chat.rename.title")} value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
          <p className="dim">{t("chat.rename.how")}</p>
        </Dialog>
      )}
    </li>
  );
}

/** The first pages of the list. They are read again when the search or the conversation changes. */
function useConversations(search: string, current: string) {
  const [pages, setPages] = useState(1);
  const [result, setResult] = useState<{ items: Item[]; total: number; failure: unknown }>({ items: [], total: 0, failure: null });
  const refresh = useCallback(() => {
    const query = { limit: Math.min(PAGE * pages, 100), ...(search ? { search } : {}) };
    dataOf(api.GET("/conversations", { params: { query } })).then(
      ({ conversations, total }) => setResult({ items: conversations, total, failure: null }),
      (failure: unknown) => setResult((before) => ({ ...before, failure })),
    );
  }, [search, pages]);
  useEffect(() => {
    const timer = setTimeout(refresh, search ? TYPING_MS : 0);
    return () => clearTimeout(timer);
  }, [refresh, search, current]);
  useEffect(() => {
    window.addEventListener("focus", refresh);
    return () => window.removeEventListener("focus", refresh);
  }, [refresh]);
  return { ...result, more: () => setPages(pages + 1), refresh };
}
