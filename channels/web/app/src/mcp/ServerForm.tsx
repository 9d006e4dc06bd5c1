/** The form of a server. What it will run or reach is shown in full, and saved only when that was confirmed. */
import { useId, useState, type ReactNode, type SyntheticEvent } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { EMPTY, entryOf, fieldsOf, keptNames, patchOf, type Fields } from "./entry";
import { addServer, changeServer, type Server, type Servers } from "./servers";

interface Props {
  /** The server to change; without one a server is added. */
  server?: Server;
  onSaved: (servers: Servers) => void;
  onClose: () => void;
}

export function ServerForm({ server, onSaved, onClose }: Props) {
  const t = useTexts();
  const [fields, setFields] = useState<Fields>(server ? fieldsOf(server) : EMPTY);
  const [isAsked, setAsked] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const set = (changes: Partial<Fields>) => setFields({ ...fields, ...changes });
  const isProgram = fields.kind === "program";
  const save = () => {
    setFailure(null);
    const request = server ? changeServer(server.server, patchOf(server, fields)) : addServer(fields.name.trim(), fields.block.trim(), entryOf(fields));
    request.then(
      (servers) => {
        onSaved(servers);
        onClose();
      },
      setFailure,
    );
  };
  const ask = (event: SyntheticEvent) => {
    event.preventDefault();
    setAsked(true);
  };
  const kept = server ? keptNames(server) : [];
  return (
    <>
    <form className="settings card" onSubmit={ask} aria-label={server ? t("mcp.change.title", { server: server.server }) : t("mcp.add")}>
      {!server && (
        <>
          <Field label={t("mcp.kind")}>
            {(id) => (
              <select id={id} value={fields.kind} onChange={(event) => set({ kind: event.target.value as Fields["kind"] })}>
                <option value="program">{t("mcp.kind.program")}</option>
                <option value="address">{t("mcp.kind.address")}</option>
              </select>
            )}
          </Field>
          <Field label={t("mcp.name")}>
            {(id) => <input id={id} required value={fields.name} onChange={(event) => set({ name: event.target.value })} />}
          </Field>
          <Field label={t("mcp.block")}>
            {(id) => <input id={id} value={fields.block} onChange={(event) => set({ block: event.target.value })} />}
          </Field>
        </>
      )}
      {isProgram ? (
        <Lines label={t("mcp.words")} required value={fields.words} onChange={(words) => set({ words })} />
      ) : (
        <Field label={t("mcp.url")}>
          {(id) => <input id={id} type="url" required value={fields.url} onChange={(event) => set({ url: event.target.value })} />}
        </Field>
      )}
      <Lines label={t(isProgram ? "mcp.env" : "mcp.headers")} value={fields.variables} onChange={(variables) => set({ variables })} />
      {isProgram && (
        <>
          <Lines label={t("mcp.readable")} value={fields.readable} onChange={(readable) => set({ readable })} />
          <Field label={t("mcp.folder")}>
            {(id) => <input id={id} value={fields.folder} onChange={(event) => set({ folder: event.target.value })} />}
          </Field>
          <Check label={t("mcp.network")} value={fields.network} onChange={(network) => set({ network })} />
        </>
      )}
      <Check label={t("mcp.trusted")} value={fields.isTrusted} onChange={(isTrusted) => set({ isTrusted })} />
      {kept.length > 0 && <p className="notice">{t("mcp.kept", { names: visible(kept.join(", ")) })}</p>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <div className="choices">
        <Button onClick={onClose}>{t("ui.cancel")}</Button>
        <Button kind="primary" type="submit">{t("ui.save")}</Button>
      </div>
    </form>
      {isAsked && (
        <Dialog title={t("mcp.confirm")} submit={t("ui.save")} onClose={() => setAsked(false)} onSubmit={save}>
          <p>{t(isProgram ? "mcp.confirm.program" : "mcp.confirm.address")}</p>
          <pre className="entry">{visible(JSON.stringify(entryOf(fields), null, 2))}</pre>
        </Dialog>
      )}
    </>
  );
}

function Field({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </>
  );
}

function Lines({ label, value, required = false, onChange }: { label: string; value: string; required?: boolean; onChange: (value: string) => void }) {
  return (
    <Field label={label}>
      {(id) => <textarea id={id} rows={3} spellCheck={false} required={required} value={value} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}

function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label className="choices">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}
