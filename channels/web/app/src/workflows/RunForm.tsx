/** Begins a run, with a value for each input. A value that is JSON keeps its type, as in the command. */
import { useId, useState, type SyntheticEvent } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { beginRun, type Run, type Workflow } from "./workflows";

export function RunForm({ block, workflow, onBegun }: { block: string; workflow: Workflow; onBegun: (run: Run) => void }) {
  const t = useTexts();
  const id = useId();
  const [values, setValues] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<unknown>(null);
  const [isSent, setSent] = useState(false);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setFailure(null);
    setSent(true);
    const inputs = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== "").map(([name, text]) => [name, valueOf(text)]));
    beginRun(block, workflow.name, inputs).then(onBegun, (error: unknown) => {
      setSent(false);
      setFailure(error);
    });
  };
  return (
    <form className="settings" aria-label={t("workflows.run")} onSubmit={submit}>
      {Object.entries(workflow.inputs).map(([name, preset]) => (
        <InputRow key={name} id={`${id} ${name}`} name={name} preset={preset} value={values[name] ?? ""} onChange={(text) => setValues({ ...values, [name]: text })} />
      ))}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <div className="choices">
        <Button kind="primary" type="submit" disabled={isSent}>{t("workflows.run.begin")}</Button>
      </div>
    </form>
  );
}

interface RowProps {
  id: string;
  name: string;
  preset: unknown;
  value: string;
  onChange: (text: string) => void;
}

function InputRow({ id, name, preset, value, onChange }: RowProps) {
  return (
    <>
      <label htmlFor={id}>{name}</label>
      <input id={id} value={value} required={preset === null} placeholder={preset === null ? "" : typeof preset === "string" ? preset : JSON.stringify(preset)} onChange={(event) => onChange(event.target.value)} />
    </>
  );
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
