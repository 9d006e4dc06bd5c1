/** The first steps: the model that answers, who the agent is, how it asks, and a first answer. Everything here can be
 * changed later on the page of blocks. */
import { useCallback, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useChatStore } from "../chat/ChatContext";
import { NEW } from "../chat/store";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { goTo } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/pages.css";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

const APPROVALS = ["all", "some", "none"] as const;
type Approvals = (typeof APPROVALS)[number];

export default function SetupPage() {
  const t = useTexts();
  const mayOperate = useMay("operate");
  const ask = useCallback(async () => (await dataOf(api.GET("/api/blocks"))).blocks, []);
  const { data, failure } = useLoaded(ask);
  const block = data?.find((one) => one.name === "main") ?? data?.[0];
  return (
    <div className="page">
      <h1>{t("setup.title")}</h1>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {!mayOperate && <Permitted scope="operate">{null}</Permitted>}
      {mayOperate && block !== undefined && <Steps block={block} />}
    </div>
  );
}

function Steps({ block }: { block: Schemas["BlockState"] }) {
  const t = useTexts();
  const store = useChatStore();
  const [model, setModel] = useState(block.config.model ?? "");
  const [name, setName] = useState(block.config.monitor_name ?? "");
  const [approvals, setApprovals] = useState<Approvals>(() => APPROVALS.find((one) => one === block.config.permissions?.approvals) ?? "some");
  const [failure, setFailure] = useState<unknown>(null);
  const begin = (event: SyntheticEvent) => {
    event.preventDefault();
    const config = { model: model || null, monitor_name: name.trim() || null, permissions: { approvals } };
    const changes = { params: { path: { name: block.name } }, body: { config } };
    dataOf(api.PATCH("/api/blocks/{name}", changes)).then(() => {
      store.send(NEW, { content: t("setup.first"), files: [], block: block.name });
      goTo("chat");
    }, setFailure);
  };
  return (
    <form className="setup" onSubmit={begin}>
      <ModelStep model={model} onChange={setModel} />
      <h2><label htmlFor="setup-name">{t("setup.name")}</label></h2>
      <input id="setup-name" value={name} maxLength={60} placeholder={t("chat.agent")} onChange={(event) => setName(event.target.value)} />
      <fieldset>
        <legend>{t("blocks.approvals")}</legend>
        {APPROVALS.map((one) => (
          <label key={one} className="choice">
            <input type="radio" name="approvals" checked={approvals === one} onChange={() => setApprovals(one)} /> {t(`blocks.approvals.${one}`)}
          </label>
        ))}
        {approvals === "none" && <Notice kind="info">{t("setup.never")}</Notice>}
      </fieldset>
      <p>{t("setup.announce", { message: t("setup.first"), model: model || t("setup.default") })}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <Button kind="primary" type="submit">{t("setup.begin")}</Button>
    </form>
  );
}

/** The models of the configured vendors, and why others cannot be listed. */
function ModelStep({ model, onChange }: { model: string; onChange: (model: string) => void }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/models")), []);
  const { data, failure } = useLoaded(ask);
  const problems = (data?.adapters ?? []).filter((one) => one.problem);
  return (
    <>
      <h2><label htmlFor="setup-model">{t("blocks.model")}</label></h2>
      <select id="setup-model" value={model} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t("setup.default")}</option>
        {data?.adapters.map((adapter) => (
          <optgroup key={adapter.adapter} label={adapter.adapter}>
            {(adapter.models ?? []).map((one) => <option key={one.name}>{one.name}</option>)}
          </optgroup>
        ))}
      </select>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {problems.map((one) => <p key={one.adapter} className="dim">{one.adapter}: {one.problem}</p>)}
      <p className="dim">{t("setup.keys")}</p>
    </>
  );
}
