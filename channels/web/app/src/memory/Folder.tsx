/** A folder of memory: its folders, which are read when they are opened, and its files. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";

interface Props {
  path: string;
  /** The path of the file that is shown; the folders above it are open. */
  current: string;
}

export function Folder({ path, current }: Props) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/files", { params: { query: { path } } })), [path]);
  const { data, failure } = useLoaded(ask);
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data?.entries.length === 0) return <p className="dim">{t("memory.empty")}</p>;
  return (
    <ul>
      {data?.entries.map((entry) =>
        entry.kind === "folder" ? (
          <Subfolder key={entry.path} entry={entry} current={current} />
        ) : (
          <li key={entry.path}>
            <a href={addressOf("memory", entry.path)} aria-current={entry.path === current ? "true" : undefined}>{nameOf(entry.path)}</a>
          </li>
        ),
      )}
    </ul>
  );
}

function Subfolder({ entry, current }: { entry: Schemas["MemoryEntry"]; current: string }) {
  const [isOpen, setOpen] = useState(current.startsWith(`${entry.path}/`));
  return (
    <li>
      <button type="button" className="folder" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {nameOf(entry.path)}
      </button>
      {isOpen && <Folder path={entry.path} current={current} />}
    </li>
  );
}

function nameOf(path: string): string {
  return visible(path.slice(path.lastIndexOf("/") + 1));
}
