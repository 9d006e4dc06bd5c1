/** Takes documents that are dropped on the page or chosen, and says of each how far it is and whether it is in memory. */
import { useRef, useState, type DragEvent, type ReactNode } from "react";

import { filesOf } from "../chat/attachments";
import { newId } from "../api/socket";
import type { Progress } from "../api/upload";
import { useTexts } from "../i18n";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { addDocument, documentSentence, type MemoryDocument } from "./documents";

interface Added {
  key: string;
  name: string;
  /** Null until it is there. */
  stored: MemoryDocument | null;
  progress: Progress;
  failure: unknown;
  given: AbortController;
}

export function DocumentDrop({ children, onAdded }: { children: ReactNode; onAdded: () => void }) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const [documents, setDocuments] = useState<Added[]>([]);
  const add = async (files: File[]) => {
    const added = files.map((file) => ({ file, key: newId(), given: new AbortController() }));
    setDocuments(added.map(({ file, key, given }) => ({ key, name: file.name, stored: null, progress: { bytes: 0, total: 0 }, failure: null, given })));
    const change = (key: string, changes: Partial<Added>) => setDocuments((before) => before.map((one) => (one.key === key ? { ...one, ...changes } : one)));
    for (const { file, key, given } of added) {
      await addDocument(file, (progress) => change(key, { progress }), given.signal).then((stored) => change(key, { stored }), (failure: unknown) => change(key, { failure }));
    }
    onAdded();
  };
  const drop = (event: DragEvent) => {
    setOver(false);
    if (filesOf(event.dataTransfer).length === 0) return;
    event.preventDefault();
    void add(filesOf(event.dataTransfer));
  };
  return (
    // Whoever has no pointer chooses files with the button.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div className="memory-page" data-over={isOver} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <div className="memory-head">
        <input ref={field} type="file" multiple hidden aria-label={t("memory.add")} onChange={(event) => { void add([...(event.target.files ?? [])]); event.target.value = ""; }} />
        <Button onClick={() => field.current?.click()}>{t("memory.add")}</Button>
        <span className="dim">{t("memory.add.how")}</span>
      </div>
      {documents.length > 0 && (
        <ul className="memory-added" aria-label={t("memory.added")}>
          {documents.map((one) => (
            <li key={one.key} aria-busy={one.stored === null && one.failure === null}>
              <State document={one} />
            </li>
          ))}
        </ul>
      )}
      {children}
    </div>
  );
}

function State({ document }: { document: Added }) {
  const t = useTexts();
  const { name, stored, progress, failure, given } = document;
  if (given.signal.aborted && stored === null) return <span role="status">{t("memory.add.cancelled", { name })}</span>;
  if (failure !== null) return <Notice kind="error">{documentSentence(t, name, failure)}</Notice>;
  if (stored !== null) {
    const outcome = t(stored.added ? "memory.add.done" : "memory.add.unchanged");
    return <span role="status"><a href={addressOf("memory", stored.path)}>{stored.path}</a> {outcome}</span>;
  }
  const isMoving = progress.total > 0;
  const label = t("memory.add.busy", { name });
  return (
    <div className="choices">
      <progress aria-label={label} max={isMoving ? progress.total : undefined} value={isMoving ? progress.bytes : undefined} />
      <span className="dim">{label}</span>
      <Button aria-label={t("memory.add.cancel", { name })} onClick={() => given.abort()}>{t("ui.cancel")}</Button>
    </div>
  );
}
