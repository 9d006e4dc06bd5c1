/** The first steps: the model that answers, the first block, how it asks, and a first answer. Everything here can be
 * changed later on the pages of blocks and of settings. */
import { useCallback, useEffect, useState, type SyntheticEvent } from "react";

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
import { ChannelsStep } from "./ChannelsStep";
import { ModelStep } from "./ModelStep";
import { AS_IT_IS, isReady, prepareBlock, saveSettings, type Plan } from "./plan";

const APPROVALS = ["all", "some", "none"] as const;
type Approvals = (typeof APPROVALS)[number];

const ASK_AGAIN_MS = 2000;

export default function SetupPage() {
  const t = useTexts();
  const mayOperate = useMay("operate");
  const seesSettings = useMay("operate", { everywhere: true });
  const ask = useCallback(async () => (await dataOf(api.GET("/api/blocks"))).blocks, []);
  const { data, failure } = useLoaded(ask);
  const block = data?.find((one) => one.name === "main") ?? data?.[0];
  return (
    <div className="page">
      <h1>{t("setup.title")}</h1>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {!mayOperate && <Permitted scope="operate">{null}</Permitted>}
      {mayOperate && block !== undefined && <Steps block={block} />}
      {seesSettings && <ChannelsStep />}
    </div>
  );
}

function Steps({ block }: { block: Schemas["BlockState"] }) {
  const t = useTexts();
  const store = useChatStore();
  const [plan, setPlan] = useState<Plan>({ ...AS_IT_IS, model: block.config.model ?? "" });
  const [name, setName] = useState(block.name);
  const [agent, setAgent] = useState(block.config.monitor_name ?? "");
  const [approvals, setApprovals] = useState<Approvals>(() => APPROVALS.find((one) => one === block.config.permissions?.approvals) ?? "some");
  const [failure, setFailure] = useState<unknown>(null);
  const [isWaiting, setWaiting] = useState(false);
  const model = plan.model || (plan.settings === null ? t("setup.default") : plan.adapter);
  const finish = () => {
    const config = { model: plan.settings === null && plan.model ? plan.model : null, monitor_name: agent.trim() || null, permissions: { approvals } };
    prepareBlock(name.trim(), config).then(() => {
      store.send(NEW, { content: t("setup.first"), files: [], block: name.trim() });
      goTo("chat");
    }, setFailure);
  };
  const begin = (event: SyntheticEvent) => {
    event.preventDefault();
    setFailure(null);
    if (plan.settings === null) finish();
    else saveSettings(plan).then(() => setWaiting(true), setFailure);
  };
  if (isWaiting) return <Restart plan={plan} failure={failure} onReady={finish} />;
  return (
    <form className="setup" onSubmit={begin}>
      <ModelStep plan={plan} onChange={setPlan} />
      <h2><label htmlFor="setup-block">{t("setup.block")}</label></h2>
      <input id="setup-block" value={name} required onChange={(event) => setName(event.target.value)} />
      <h2><label htmlFor="setup-name">{t("setup.name")}</label></h2>
      <input id="setup-name" value={agent} maxLength={60} placeholder={t("chat.agent")} onChange={(event) => setAgent(event.target.value)} />
      <fieldset>
        <legend>{t("blocks.approvals")}</legend>
        {APPROVALS.map((one) => (
          <label key={one} className="choice">
            <input type="radio" name="approvals" checked={approvals === one} onChange={() => setApprovals(one)} /> {t(`blocks.approvals.${one}`)}
          </label>
        ))}
        {approvals === "none" && <Notice kind="info">{t("setup.never")}</Notice>}
      </fieldset>
      <p>{t(plan.settings === null ? "setup.announce" : "setup.announce.restart", { message: t("setup.first"), model })}</p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <Button kind="primary" type="submit">{t(plan.settings === null ? "setup.begin" : "setup.save")}</Button>
    </form>
  );
}

/** Waits until a monitor has the adapter, which it takes at its start, and goes on by itself. */
function Restart({ plan, failure, onReady }: { plan: Plan; failure: unknown; onReady: () => void }) {
  const t = useTexts();
  const [isFound, setFound] = useState(false);
  const { adapter } = plan;
  useEffect(() => {
    if (isFound) return;
    const timer = setInterval(() => void isReady(adapter).then((is) => setFound((before) => before || is), () => undefined), ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [adapter, isFound]);
  return (
    <>
      <Notice kind="info">{t(isFound ? "setup.ready" : "setup.restart", { adapter })}</Notice>
      {plan.settings?.api_key && !isFound && <p>{t("setup.restart.key", { variable: plan.settings.api_key })}</p>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isFound && <Button kind="primary" onClick={onReady}>{t("setup.begin")}</Button>}
    </>
  );
}
