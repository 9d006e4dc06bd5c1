/** The control of one setting, with what is wrong with it. */
import { useId } from "react";

import { useTexts } from "../i18n";
import type { Field } from "./fields";

interface Props {
  field: Field;
  text: string;
  /** The variable of the environment that sets it; then the file does not count. */
  locked: string;
  /** Of a secret: whether its variable is set where Trunkline runs, if that is known. */
  isSet: boolean | undefined;
  problem: string;
  onChange: (text: string) => void;
}

export function SettingField({ field, text, locked, isSet, problem, onChange }: Props) {
  const t = useTexts();
  const id = useId();
  const note = locked ? t("settings.locked", { variable: locked }) : noteOf(t, field, text, isSet);
  if (field.kind === "file") {
    return (
      <>
        <span>{field.name}</span>
        <div>
          <code>{text || t("settings.unset")}</code>
          <p className="dim">{t("settings.file")}</p>
        </div>
      </>
    );
  }
  return (
    <>
      <label htmlFor={id}>{field.name}</label>
      <div>
        <Control id={id} field={field} text={text} isLocked={locked !== ""} isWrong={problem !== ""} onChange={onChange} />
        <div id={`${id}-note`}>
          {problem && <p className="field-problem" role="alert">{problem}</p>}
          {note && <p className="dim">{note}</p>}
        </div>
      </div>
    </>
  );
}

interface ControlProps {
  id: string;
  field: Field;
  text: string;
  isLocked: boolean;
  isWrong: boolean;
  onChange: (text: string) => void;
}

function Control({ id, field, text, isLocked, isWrong, onChange }: ControlProps) {
  const common = { id, disabled: isLocked, "aria-invalid": isWrong || undefined, "aria-describedby": `${id}-note` };
  const placeholder = field.kind === "list" ? "" : field.standard;
  if (field.kind === "boolean" || field.kind === "choice") {
    return <Choice {...common} field={field} text={text} onChange={onChange} />;
  }
  if (field.kind === "list") {
    return <textarea {...common} rows={Math.min(6, text.split("\n").length + 1)} value={text} onChange={(event) => onChange(event.target.value)} />;
  }
  if (field.kind === "number") {
    return (
      <input
        {...common}
        type="number"
        step={field.isWhole ? 1 : "any"}
        min={field.minimum}
        max={field.maximum}
        value={text}
        placeholder={placeholder}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  return <input {...common} value={text} placeholder={placeholder} autoComplete="off" spellCheck={false} onChange={(event) => onChange(event.target.value)} />;
}

interface ChoiceProps {
  id: string;
  disabled: boolean;
  field: Field;
  text: string;
  onChange: (text: string) => void;
}

function Choice({ field, text, onChange, ...common }: ChoiceProps) {
  const t = useTexts();
  const isBoolean = field.kind === "boolean";
  const choices = isBoolean ? ["true", "false"] : field.choices;
  return (
    <select {...common} value={text} onChange={(event) => onChange(event.target.value)}>
      <option value="">{t("settings.default")}</option>
      {choices.map((one) => (
        <option key={one} value={one}>
          {isBoolean ? t(one === "true" ? "settings.yes" : "settings.no") : one}
        </option>
      ))}
    </select>
  );
}

function noteOf(t: ReturnType<typeof useTexts>, field: Field, text: string, isSet: boolean | undefined): string {
  if (field.kind === "list") return t("settings.list");
  if (field.kind !== "secret") return "";
  if (text === "" || isSet === undefined) return t("settings.secret");
  return t(isSet ? "settings.secret.set" : "settings.secret.unset", { variable: text });
}
