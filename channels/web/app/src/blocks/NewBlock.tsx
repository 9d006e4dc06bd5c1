/** A new block: its name, and the template that it begins with. What a template gives is shown before it is created. */
import { useCallback, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { BlockMark } from "./BlockMark";

type Template = Schemas["BlockTemplateItem"];

const NONE: Template[] = [];

export function NewBlock({ onCreated }: { onCreated: () => void }) {
  const t = useTexts();
  const isOwner = useMay("operate", { everywhere: true });
  const ask = useCallback(async () => (isOwner ? (await dataOf(api.GET("/api/block-templates"))).templates : NONE), [isOwner]);
  const { data } = useLoaded(ask);
  const [name, setName] = useState("");
  const [template, setTemplate] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const templates = data ?? NONE;
  const chosen = templates.find((one) => one.name === template);
  const create = (event: SyntheticEvent) => {
    event.preventDefault();
    dataOf(api.POST("/api/blocks", { body: { name: name.trim(), template } })).then(() => {
      setName("");
      setTemplate("");
      setFailure(null);
      onCreated();
    }, setFailure);
  };
  return (
    <>
      <form className="card-row" onSubmit={create}>
        <input aria-label={t("blocks.name")} placeholder={t("blocks.name")} value={name} required onChange={(event) => setName(event.target.value)} />
        <select aria-label={t("blocks.template")} value={template} onChange={(event) => setTemplate(event.target.value)}>
          <option value="">{t("blocks.template.none")}</option>
          {templates.filter((one) => !one.problem).map((one) => <option key={one.name}>{one.name}</option>)}
        </select>
        <Button kind="primary" type="submit">
          {t("blocks.create")}
        </Button>
        {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      </form>
      {chosen !== undefined && <TemplateView template={chosen} />}
      {templates.filter((one) => one.problem).map((one) => (
        <Notice key={one.name} kind="error">{t("blocks.template.problem", { name: visible(one.name), problem: visible(one.problem) })}</Notice>
      ))}
    </>
  );
}

/** What a block gets from a template: a person reads it before the agent does. */
function TemplateView({ template }: { template: Template }) {
  const t = useTexts();
  const { config, personality, roles } = template;
  const { permissions, tools } = config;
  return (
    <section className="card" aria-label={t("blocks.template")}>
      <p>
        <BlockMark config={config} />
        {visible(template.summary)}
      </p>
      {personality && <p className="written">{visible(personality)}</p>}
      {roles && <p className="written">{visible(roles)}</p>}
      {tools && <p>{t("blocks.template.tools", { tools: visible(tools.join(", ")) })}</p>}
      {permissions && Object.keys(permissions).length > 0 && (
        <p>
          {t("blocks.template.permissions", {
            permissions: Object.entries(permissions).map(([key, value]) => `${key} = ${String(value)}`).join(", "),
          })}
        </p>
      )}
    </section>
  );
}
