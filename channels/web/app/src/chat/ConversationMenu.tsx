/** What can be done with a conversation of the list: name it, pin it, archive it, save it as a file. */
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { useChatStore } from "./ChatContext";
import { saveConversation, type ExportFormat } from "./export";

type Item = Schemas["ConversationItem"];

export function ConversationMenu({ item, onChanged }: { item: Item; onChanged: () => void }) {
  const t = useTexts();
  const store = useChatStore();
  const mayChat = useMay("chat");
  const [title, setTitle] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const change = (body: Schemas["ConversationChanges"]) => {
    setFailure(null);
    dataOf(api.PATCH("/conversations/{id}", { params: { path: { id: item.id } }, body })).then((changed) => {
      store.rename(item.id, changed.title ?? "");
      onChanged();
    }, setFailure);
  };
  const save = (format: ExportFormat) => {
    setFailure(null);
    saveConversation(item.id, format).catch(setFailure);
  };
  return (
    <>
      <Menu.Root modal={false}>
        <Menu.Trigger className="button button-icon" aria-label={t("chat.menu", { title: item.title ?? item.id })}>
          ⋯
        </Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="end" sideOffset={4}>
            {mayChat && (
              <>
                <Menu.Item onSelect={() => setTitle(item.title ?? "")}>{t("chat.rename")}</Menu.Item>
                <Menu.Item onSelect={() => change({ pinned: !item.pinned })}>{t(item.pinned ? "chat.unpin" : "chat.pin")}</Menu.Item>
                <Menu.Item onSelect={() => change({ archived: !item.archived })}>
                  {t(item.archived ? "chat.restore" : "chat.archive")}
                </Menu.Item>
                <Menu.Separator />
              </>
            )}
            <Menu.Item onSelect={() => save("markdown")}>{t("chat.saveMarkdown")}</Menu.Item>
            <Menu.Item onSelect={() => save("json")}>{t("chat.saveJson")}</Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {title !== null && (
        <Dialog title={t("chat.rename.title")} submit={t("ui.save")} onClose={() => setTitle(null)} onSubmit={() => change({ title: title.trim() || null })}>
          <input aria-label={t("chat.rename.title")} value={title} maxLength={200} onChange={(event) => setTitle(event.target.value)} />
          <p className="dim">{t("chat.rename.how")}</p>
        </Dialog>
      )}
    </>
  );
}
