/** The way to take back what a call changed in memory. Before that it shows what would be taken back. */
import { useState } from "react";

import { ApiError } from "../api/client";
import { Effect } from "../approvals/Effect";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import type { ToolPart } from "./turn";
import { changeOf, undo, wasUndone, type UndoableChange } from "./undo";

export function UndoCall({ part, commit }: { part: ToolPart; commit: string }) {
  const t = useTexts();
  const [isUndone, setUndone] = useState(() => wasUndone(part, commit));
  const [change, setChange] = useState<UndoableChange | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  if (isUndone) return <p className="dim" role="status">{t("tool.undone")}</p>;
  const ask = () => {
    setFailure(null);
    changeOf(part, commit).then(setChange, setFailure);
  };
  const confirm = (asked: UndoableChange) => {
    undo(part, asked).then(() => setUndone(true), setFailure);
  };
  const isConflict = failure instanceof ApiError && failure.code === "conflict";
  return (
    <div className="tool-undo">
      <Button onClick={ask}>{t("tool.undo")}</Button>
      {failure !== null && <Notice kind="error">{isConflict ? t("tool.undo.conflict") : sentence(t, failure)}</Notice>}
      {change !== null && (
        <Dialog title={t("tool.undo.title", { name: part.name })} submit={t("tool.undo")} isDangerous onClose={() => setChange(null)} onSubmit={() => confirm(change)}>
          <p>{t("tool.undo.means")}</p>
          <Effect detail={{ kind: "diff", text: change.diff.text }} />
          {!change.diff.whole && <p className="dim">{t("tool.undo.more")}</p>}
        </Dialog>
      )}
    </div>
  );
}
