/** The settings of a block that most people change: purpose, model, identity and permissions. */
import { useId, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

const TEXTS = ["description", "model", "monitor_name", "monitor_emoji", "monitor_colour"] as const;

/** The permissions, each with its values. "" is the default of all blocks. */
const PERMISSIONS = {
  approvals: ["", "all", "some", "none"],
  scope: ["", "block", "workspace", "system"],
  allow_shell: ["", "true", "false"],
  allow_network: ["", "true", "false"],
} as const;
type Permission = keyof typeof PERMISSIONS;

type Values = Record<(typeof TEXTS)[number] | Permission, string>;

export function BlockSettings({ block, onChanged }: { block: Schemas["BlockState"]; onChanged: () => void }) {
  const t = useTexts();
  const [values, setValues] = useState<Values>(() => valuesOf(block.config));
  const [outcome, setOutcome] = useState<{ failure: unknown } | null>(null);
  const save = (event: SyntheticEvent) => {
    event.preventDefault();
    const changes = { params: { path: { name: block.name } }, body: { config: changesOf(block.config, values) } };
    dataOf(api.PATCH("/api/blocks/{name}", changes)).then(
      () => {
        setOutcome({ failure: null });
        onChanged();
      },
      (failure: unknown) => setOutcome({ failure }),
    );
  };
  const change = (name: keyof Values) => (value: string) => setValues({ ...values, [name]: value });
  return (
    <form className="settings" onSubmit={save}>
      {TEXTS.map((name) => (
        <TextSetting key={name} label={t(`blocks.${name}`)} value={values[name]} onChange={change(name)} />
      ))}
      {(Object.keys(PERMISSIONS) as Permission[]).map((name) => (
        <PermissionSetting key={name} name={name} value={values[name]} onChange={change(name)} />
      ))}
      <div className="choices">
        <Button kind="primary" type="submit">
          {t("ui.save")}
        </Button>
      </div>
      {outcome !== null && outcome.failure === null && <Notice kind="info">{t("blocks.saved")}</Notice>}
      {outcome !== null && outcome.failure !== null && <Notice kind="error">{sentence(t, outcome.failure)}</Notice>}
    </form>
  );
}

interface SettingProps {
  value: string;
  onChange: (value: string) => void;
}

function TextSetting({ label, value, onChange }: SettingProps & { label: string }) {
  const id = useId();
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input id={id} value={value} onChange={(event) => onChange(event.target.value)} />
    </>
  );
}

function PermissionSetting({ name, value, onChange }: SettingProps & { name: Permission }) {
  const t = useTexts();
  const id = useId();
  return (
    <>
      <label htmlFor={id}>{t(`blocks.${name}`)}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        {PERMISSIONS[name].map((one) => (
          <option key={one} value={one}>
            {t(one ? (`blocks.${name}.${one}` as TextKey) : "blocks.default")}
          </option>
        ))}
      </select>
    </>
  );
}

function valuesOf(config: Schemas["BlockConfig"]): Values {
  const { permissions } = config;
  const words = (value: string | boolean | null | undefined) => (value === undefined || value === null ? "" : String(value));
  return {
    description: words(config.description),
    model: words(config.model),
    monitor_name: words(config.monitor_name),
    monitor_emoji: words(config.monitor_emoji),
    monitor_colour: words(config.monitor_colour),
    approvals: words(permissions?.approvals),
    scope: words(permissions?.scope),
    allow_shell: words(permissions?.allow_shell),
    allow_network: words(permissions?.allow_network),
  };
}

/** A merge patch of what was changed: an emptied field removes the setting. */
function changesOf(config: Schemas["BlockConfig"], values: Values): Record<string, unknown> {
  const before = valuesOf(config);
  const changed = (name: keyof Values) => values[name] !== before[name];
  const valueOf = (text: string) => (text === "" ? null : text === "true" ? true : text === "false" ? false : text);
  const permissions = Object.fromEntries(
    (Object.keys(PERMISSIONS) as Permission[]).filter(changed).map((name) => [name, valueOf(values[name])]),
  );
  return {
    ...Object.fromEntries(TEXTS.filter(changed).map((name) => [name, values[name] === "" ? null : values[name]])),
    ...(Object.keys(permissions).length > 0 ? { permissions } : {}),
  };
}
