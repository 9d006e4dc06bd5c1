/** The changes of a file: who made each in which turn, what it changed, and the way to undo it. */
import { useCallback, useState } from "react";

import { api, ApiError, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { Effect } from "../approvals/Effect";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Origin } from "./Origin";

type Revision = Schemas["MemoryRevision"];

export function FileHistory({ path, onChanged }: { path: string; onChanged: () => void }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/history", { params: { query: { path } } })), [path]);
  const { data, failure, reload } = useLoaded(ask);
  const changed = () => {
    reload();
    onChanged();
  };
  if (failure instanceof ApiError && failure.code === "not_found") return <Notice kind="info">{t("memory.authors.none")}</Notice>;
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data === null) return <p className="waiting">{t("app.loading")}</p>;
  return (
    <ul className="cards">
      {data.revisions.map((revision, index) => (
        <li key={revision.version} className="card">
          <Change path={path} revision={revision} isNewest={index === 0} onChanged={changed} />
        </li>
      ))}
    </ul>
  );
}

type Undo = "undo" | "restore";

function Change({ path, revision, isNewest, onChanged }: { path: string; revision: Revision; isNewest: boolean; onChanged: () => void }) {
  const t = useTexts();
  const { version } = revision;
  const [diff, setDiff] = useState<Schemas["MemoryDiff"] | null>(null);
  const [asked, setAsked] = useState<Undo | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const show = () => {
    if (diff !== null) setDiff(null);
    else dataOf(api.GET("/api/memory/diff", { params: { query: { path, new: version } } })).then(setDiff, setFailure);
  };
  const revert = (undo: Undo) => {
    const body = undo === "undo" ? { path, version } : { path, to: version };
    dataOf(api.POST("/api/memory/revert", { body })).then(onChanged, setFailure);
  };
  return (
    <>
      <p>{revision.message}</p>
      <Origin {...revision} />
      <div className="choices">
        <Button aria-expanded={diff !== null} onClick={show}>{t("memory.diff")}</Button>
        <Button kind="danger" onClick={() => setAsked("undo")}>{t("memory.undo")}</Button>
        {!isNewest && <Button kind="danger" onClick={() => setAsked("restore")}>{t("memory.restore")}</Button>}
      </div>
      {diff !== null && <Effect detail={{ kind: "diff", text: diff.text }} />}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {asked !== null && (
        <Dialog title={t(`memory.${asked}`)} submit={t(`memory.${asked}`)} isDangerous onClose={() => setAsked(null)} onSubmit={() => revert(asked)}>
          <p>{t(`memory.${asked}.means`, { path })}</p>
        </Dialog>
      )}
    </>
  );
}
