/** The block that a new conversation is with. Nothing is shown where there is only one. */
import { useEffect, useState } from "react";

import { api, dataOf } from "../api/client";
import { useTexts } from "../i18n";

export function BlockChoice({ block, onChange }: { block: string; onChange: (block: string) => void }) {
  const t = useTexts();
  const [names, setNames] = useState<string[]>([]);
  const isGone = block !== "" && names.length > 0 && !names.includes(block);
  useEffect(() => {
    if (isGone) onChange("");
  }, [isGone, onChange]);
  useEffect(() => {
    dataOf(api.GET("/api/blocks")).then(
      ({ blocks }) => setNames(blocks.filter((one) => one.config.enabled !== false).map((one) => one.name)),
      () => setNames([]), // the gateway chooses; sending says what is wrong
    );
  }, []);
  if (names.length < 2) return null;
  return (
    <label className="block-choice">
      {t("chat.block")}
      <select value={block} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t("chat.block.any")}</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
