/** Takes documents that are dropped on the page or chosen, and says of each whether it is in memory. */
import { useRef, useState, type DragEvent, type ReactNode } from "react";

import { filesOf } from "../chat/attachments";
import { newId } from "../api/socket";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { addDocument, documentFailure } from "./documents";

interface Added {
  key: string;
  name: string;
  /** "" until it is there. */
  path: string;
  failure: unknown;
}

export function DocumentDrop({ children, onAdded }: { children: ReactNode; onAdded: () => void }) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const [documents, setDocuments] = useState<Added[]>([]);
  const add = async (files: File[]) => {
    const added = files.map((file) => ({ file, key: newId() }));
    setDocuments(added.map(({ file, key }) => ({ key, name: file.name, path: "", failure: null })));
    const change = (key: string, changes: Partial<Added>) => setDocuments((before) => before.map((one) => (one.key === key ? { ...one, ...changes } : one)));
    for (const { file, key } of added) await addDocument(file).then((path) => change(key, { path }), (failure: unknown) => change(key, { failure }));
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
            <li key={one.key} aria-busy={one.path === "" && one.failure === null}>
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
  const { name, path, failure } = document;
  if (failure !== null) {
    const special = documentFailure(failure);
    return <Notice kind="error">{special === null ? `${name}: ${sentence(t, failure)}` : t(special, { name })}</Notice>;
  }
  if (path === "") return <span className="dim">{t("memory.add.busy", { name })}</span>;
  return <span role="status"><a href={addressOf("memory", path)}>{path}</a> {t("memory.add.done")}</span>;
}
