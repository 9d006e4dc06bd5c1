/** One block: its state and purpose, start and stop, settings, with whom it is shared, reset, archive and delete. */
import { useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { BlockMark } from "./BlockMark";
import { BlockSettings } from "./BlockSettings";
import { BlockShares } from "./BlockShares";

type Confirmed = "stop" | "reset" | "archive" | "delete";

export function BlockCard({ block, onChanged }: { block: Schemas["BlockState"]; onChanged: () => void }) {
  const t = useTexts();
  const isOwner = useMay("owner");
  const mayShare = useMay("owner", { everywhere: true });
  const [confirming, setConfirming] = useState<Confirmed | null>(null);
  const [isEdited, setEdited] = useState(false);
  const [isShared, setShared] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const isOn = block.config.enabled !== false;
  const run = (request: Promise<unknown>) => {
    setFailure(null);
    request.then(onChanged, setFailure);
  };
  const params = { path: { name: block.name } };
  const actions: Record<Confirmed, () => Promise<unknown>> = {
    stop: () => dataOf(api.POST("/api/blocks/{name}/stop", { params, body: {} })),
    reset: () => dataOf(api.POST("/api/blocks/{name}/reset", { params, body: {} })),
    archive: () => dataOf(api.POST("/api/blocks/{name}/archive", { params })),
    delete: () => dataOf(api.DELETE("/api/blocks/{name}", { params })),
  };
  return (
    <li className="card">
      <BlockTitle block={block} isOn={isOn} />
      {block.config.description && <p>{block.config.description}</p>}
      {(block.problem || block.error) && <Notice kind="error">{block.problem || block.error}</Notice>}
      <div className="choices">
        {isOn ? (
          <Button onClick={() => setConfirming("stop")}>{t("blocks.stop")}</Button>
        ) : (
          <Button kind="primary" onClick={() => run(dataOf(api.POST("/api/blocks/{name}/start", { params })))}>
            {t("blocks.start")}
          </Button>
        )}
        <Button aria-expanded={isEdited} onClick={() => setEdited(!isEdited)}>{t("blocks.settings")}</Button>
        {mayShare && <Button aria-expanded={isShared} onClick={() => setShared(!isShared)}>{t("blocks.shares")}</Button>}
        {(["reset", "archive", "delete"] as const).map((action) => (
          <Button key={action} kind="danger" disabled={action === "delete" && !isOwner} onClick={() => setConfirming(action)}>
            {t(`blocks.${action}`)}
          </Button>
        ))}
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isEdited && <BlockSettings block={block} onChanged={onChanged} />}
      {isShared && <BlockShares block={block.name} />}
      {confirming !== null && (
        <Dialog title={`${t(`blocks.${confirming}`)}: ${block.name}`} submit={t(`blocks.${confirming}`)} isDangerous onClose={() => setConfirming(null)} onSubmit={() => run(actions[confirming]())}>
          <p>{t(`blocks.${confirming}.means`)}</p>
        </Dialog>
      )}
    </li>
  );
}

function BlockTitle({ block, isOn }: { block: Schemas["BlockState"]; isOn: boolean }) {
  const t = useTexts();
  const states: Record<string, TextKey> = { ACTIVE: "blocks.active", BUSY: "blocks.busy", ERROR: "blocks.error", SLEEPING: "blocks.sleeping" };
  return (
    <h2>
      <BlockMark config={block.config} />
      {block.name} <span className={`badge badge-${block.status}`}>{isOn ? t(states[block.status] ?? "blocks.active") : t("blocks.off")}</span>{" "}
      <span className="dim">{t("blocks.conversations", { count: block.conversations })}</span>
    </h2>
  );
}
