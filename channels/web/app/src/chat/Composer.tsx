/** The field for messages: send, stop, steer, files and commands. What is typed is kept for each conversation. */
import { lazy, Suspense, useEffect, useRef, useState, type DragEvent, type KeyboardEvent, type SyntheticEvent } from "react";

import { api, dataOf } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted } from "../session/Permitted";
import { load, save } from "../storage";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { AttachmentBar } from "./AttachmentBar";
import { filesOf, useAttachments, type Attachment } from "./attachments";
import { BlockChoice } from "./BlockChoice";
import { useChatStore } from "./ChatContext";
import { useDraft } from "./drafts";
import { NEW, type Conversation } from "./store";
import { useCommands } from "./useCommands";

const CommandMenu = lazy(() => import("./CommandMenu"));

const BLOCK = "block";

export function Composer({ conversation }: { conversation: Conversation }) {
  const t = useTexts();
  const store = useChatStore();
  const [draft, setDraft] = useDraft(conversation.id);
  const [block, setBlock] = useState(() => load(BLOCK, ""));
  const [failure, setFailure] = useState<unknown>(null);
  const attachments = useAttachments();
  const chooseBlock = (name: string) => {
    save(BLOCK, name);
    setBlock(name);
  };
  const commands = useCommands({ conversation, chooseBlock }, draft, setDraft);
  /** The message names the paths in memory, so that the agent finds what was put there. */
  const sendWith = (content: string, paths: string[]) => {
    const files = attachments.files.filter((file) => file.id && !file.toMemory).map(({ id, name }) => ({ id, name }));
    const stored = paths.length > 0 ? t("attach.stored", { paths: paths.map((path) => `/${path}`).join(", ") }) : "";
    const text = [content || files.map((file) => file.name).join(", "), stored].filter(Boolean).join("\n\n");
    store.send(conversation.id, { content: text, files, block });
    attachments.clear();
    setDraft("");
  };
  const sendMessage = (content: string) => {
    if (attachments.isBusy || (!content && !attachments.files.some(isReady))) return;
    if (attachments.files.some((file) => file.toMemory)) {
      void attachments.store().then((paths) => {
        if (paths !== null) sendWith(content, paths);
      });
    } else {
      sendWith(content, []);
    }
  };
  const send = () => {
    commands.forget();
    if (commands.isCommand) commands.run(sendMessage);
    else sendMessage(draft.trim());
  };
  const drop = (event: DragEvent) => {
    if (filesOf(event.dataTransfer).length === 0) return;
    event.preventDefault();
    attachments.add(filesOf(event.dataTransfer));
  };
  const canSend = (draft.trim() !== "" || attachments.files.some(isReady)) && !attachments.isBusy;
  return (
    // Dropping is one of three ways to add a file; the others need no pointer.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form className="composer" onSubmit={(event: SyntheticEvent) => { event.preventDefault(); send(); }} onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {commands.outcome}
      <Permitted scope="chat">
        {conversation.id === NEW && <BlockChoice block={block} onChange={chooseBlock} />}
        {commands.isOpen && (
          <Suspense>
            <CommandMenu line={draft} chosen={commands.chosen} onFound={commands.found} onTake={commands.take} />
          </Suspense>
        )}
        <Field draft={draft} isFixed={attachments.files.some((file) => file.storing !== null)} onChange={setDraft} onSend={send} onKey={commands.key} active={commands.active} onFiles={attachments.add} />
        <div className="composer-buttons">
          <AttachmentBar attachments={attachments} />
          <RunningTurn conversation={conversation} draft={draft} onSteered={() => setDraft("")} onFailed={setFailure} canSend={canSend} />
        </div>
      </Permitted>
    </form>
  );
}

function isReady(file: Attachment): boolean {
  return file.id !== "" || file.toMemory;
}

interface FieldProps {
  draft: string;
  /** Whether the text cannot be changed now, because it is about to be sent. */
  isFixed: boolean;
  onChange: (text: string) => void;
  onSend: () => void;
  /** Whether the key belongs to the menu of commands. */
  onKey: (event: KeyboardEvent) => boolean;
  /** The id of the command that the menu marks. */
  active: string | undefined;
  onFiles: (files: File[]) => void;
}

function Field({ draft, isFixed, onChange, onSend, onKey, active, onFiles }: FieldProps) {
  const t = useTexts();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (hasKeyboard()) field.current?.focus();
  }, []);
  return (
    <textarea
      ref={field}
      aria-label={t("chat.message")}
      aria-autocomplete="list"
      aria-activedescendant={active}
      placeholder={t("chat.placeholder")}
      rows={1}
      value={draft}
      readOnly={isFixed}
      onChange={(event) => onChange(event.target.value)}
      onPaste={(event) => {
        const files = filesOf(event.clipboardData);
        if (files.length === 0) return;
        event.preventDefault();
        onFiles(files);
      }}
      onKeyDown={(event) => {
        if (onKey(event)) event.preventDefault();
        else if (isSendKey(event)) {
          event.preventDefault();
          onSend();
        }
      }}
    />
  );
}

interface RunningProps {
  conversation: Conversation;
  draft: string;
  canSend: boolean;
  onSteered: () => void;
  onFailed: (failure: unknown) => void;
}

/** The buttons: send, and while a turn runs, stop and steer. */
function RunningTurn({ conversation, draft, canSend, onSteered, onFailed }: RunningProps) {
  const t = useTexts();
  const running = conversation.turns.find((turn) => turn.id !== "" && turn.phase !== "ended");
  const steer = (turn: string) => {
    const request = api.POST("/api/turns/{id}/steer", { params: { path: { id: turn } }, body: { content: draft.trim() } });
    dataOf(request).then(onSteered, onFailed);
  };
  const stop = (turn: string) => {
    dataOf(api.POST("/api/turns/{id}/cancel", { params: { path: { id: turn } }, body: {} })).catch(onFailed);
  };
  return (
    <>
      {running && (
        <>
          <Button kind="danger" onClick={() => stop(running.id)}>{t("chat.stop")}</Button>
          <Button disabled={!draft.trim()} onClick={() => steer(running.id)} title={t("chat.steer.how")}>{t("chat.steer")}</Button>
        </>
      )}
      <Button kind="primary" type="submit" disabled={!canSend}>{t(running ? "chat.queue" : "chat.send")}</Button>
    </>
  );
}

/** Enter sends where there is a keyboard; on a phone, and with Shift, it begins a line. */
function isSendKey(event: KeyboardEvent): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && hasKeyboard();
}

/** A device that is touched has a keyboard on its screen. One with a mouse, or with nothing to point, has a real one. */
function hasKeyboard(): boolean {
  return !window.matchMedia("(pointer: coarse)").matches;
}
