/** The limits of what models may cost, which the owner changes here for the next calls. */
import { useState, type SyntheticEvent } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { Budgets } from "./Budgets";
import { setLimit, type Limit, type LimitsAndUse } from "./limits";

interface LimitsProps {
  known: LimitsAndUse | null;
  /** Why the limits could not be read. */
  unread: unknown;
  onChanged: () => void;
}

export function Limits({ known, unread, onChanged }: LimitsProps) {
  const t = useTexts();
  const [unsaved, setUnsaved] = useState<unknown>(null);
  const failure = unsaved ?? unread;
  if (known === null && failure === null) return null;
  const save = (key: string, value: number | null) => {
    setUnsaved(null);
    setLimit(key, value).then(onChanged, setUnsaved);
  };
  return (
    <>
      <h2>{t("activity.limits")}</h2>
      <p className="dim">{t("activity.limits.how")}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {known !== null && <Budgets budgets={known.budgets} />}
      <ul className="cards">
        {known?.limits.map((limit) => (
          <LimitForm key={`${limit.key} ${limit.value ?? ""}`} limit={limit} onSave={save} />
        ))}
      </ul>
    </>
  );
}

interface FormProps {
  limit: Limit;
  onSave: (key: string, value: number | null) => void;
}

function LimitForm({ limit, onSave }: FormProps) {
  const t = useTexts();
  const [text, setText] = useState(limit.value?.toString() ?? "");
  const isMoney = limit.key.endsWith("spend");
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    onSave(limit.key, Number(text));
  };
  return (
    <li className="card">
      <form className="card-row" onSubmit={submit}>
        <label className="choice">
          {nameOf(t, limit.key)}
          <input type="number" min={isMoney ? 0.0001 : 1} step={isMoney ? "any" : 1} required value={text} placeholder={t("activity.limits.none")} onChange={(event) => setText(event.target.value)} />
        </label>
        <Button kind="primary" type="submit">{t("activity.limits.save")}</Button>
        {limit.value !== limit.configured && (
          <Button onClick={() => onSave(limit.key, null)}>
            {limit.configured === null ? t("activity.limits.remove") : t("activity.limits.restore", { value: limit.configured })}
          </Button>
        )}
      </form>
    </li>
  );
}

function nameOf(t: ReturnType<typeof useTexts>, key: string): string {
  const parts = key.split(".");
  const what = t(`activity.limits.${parts[parts.length - 1]}` as "activity.limits.max_daily_spend");
  if (parts[0] === "per_block") return t("activity.limits.each", { what });
  return parts[0] === "blocks" ? t("activity.limits.block", { block: parts[1] ?? "", what }) : what;
}
