/** Who answers: a model that is set up, a vendor whose key a variable holds, or a server on the machine of Trunkline. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { AS_IT_IS, planFor, planForServer, questionsOf, type Plan } from "./plan";

/** The adapter that answers as long as no model is set up. */
const OFFLINE = "offline";

interface StepProps {
  plan: Plan;
  onChange: (plan: Plan) => void;
}

export function ModelStep({ plan, onChange }: StepProps) {
  const t = useTexts();
  const isOwner = useMay("owner", { everywhere: true });
  const ask = useCallback(() => dataOf(api.GET("/api/models")), []);
  const { data, failure } = useLoaded(ask);
  const problems = (data?.adapters ?? []).filter((one) => one.problem);
  return (
    <>
      <fieldset>
        <legend>{t("setup.who")}</legend>
        {data?.adapters.every((one) => one.adapter === OFFLINE) && <p className="dim">{t("setup.offline")}</p>}
        <label className="choice">
          <input type="radio" name="who" checked={plan.settings === null} onChange={() => onChange(AS_IT_IS)} /> {t("setup.known")}
        </label>
        {plan.settings === null && (
          <select aria-label={t("blocks.model")} value={plan.model} onChange={(event) => onChange({ ...AS_IT_IS, model: event.target.value })}>
            <option value="">{t("setup.default")}</option>
            {data?.adapters.map((adapter) => (
              <optgroup key={adapter.adapter} label={adapter.adapter}>
                {(adapter.models ?? []).map((one) => <option key={one.name}>{one.name}</option>)}
              </optgroup>
            ))}
          </select>
        )}
        {isOwner && <Vendors plan={plan} known={(data?.adapters ?? []).map((one) => one.adapter)} onChange={onChange} />}
      </fieldset>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {problems.map((one) => <p key={one.adapter} className="dim">{one.adapter}: {one.problem}</p>)}
      <p className="dim">{t("setup.keys")}</p>
    </>
  );
}

function Vendors({ plan, known, onChange }: StepProps & { known: string[] }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/setup")), []);
  const { data, failure } = useLoaded(ask);
  const vendors = data?.vendors ?? [];
  const offered = vendors.filter((one) => !known.includes(one.adapter) && (one.listed || Object.values(one.keys ?? {}).includes(true)));
  return (
    <>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {offered.map((vendor) => {
        const isChosen = plan.settings !== null && plan.adapter === vendor.adapter;
        return (
          <div key={vendor.adapter}>
            <label className="choice">
              <input type="radio" name="who" checked={isChosen} onChange={() => onChange(planFor(vendor))} /> {vendor.title}
            </label>
            {isChosen && <VendorSettings vendor={vendor} plan={plan} onChange={onChange} />}
          </div>
        );
      })}
      {data !== null && <Servers addresses={data.addresses} vendors={vendors} onChange={onChange} />}
    </>
  );
}

function VendorSettings({ vendor, plan, onChange }: StepProps & { vendor: Schemas["VendorItem"] }) {
  const t = useTexts();
  const questions = Object.fromEntries((vendor.fields ?? []).map((one) => [one.name, one.question]));
  const key = plan.settings?.api_key ?? "";
  const isSet = vendor.keys?.[key];
  return (
    <div className="setup-vendor">
      {questionsOf(vendor).map((name) => (
        <label key={name}>
          {name === "api_key" ? t("setup.key") : name === vendor.address ? t("setup.address") : questions[name]}
          <input
            value={plan.settings?.[name] ?? ""}
            required={name === "api_key"}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => onChange({ ...plan, settings: { ...plan.settings, [name]: event.target.value } })}
          />
        </label>
      ))}
      {isSet !== undefined && <p className="dim">{t(isSet ? "settings.secret.set" : "settings.secret.unset", { variable: key })}</p>}
      <label>
        {t("setup.model")}
        <input value={plan.model} autoComplete="off" spellCheck={false} onChange={(event) => onChange({ ...plan, model: event.target.value })} />
      </label>
    </div>
  );
}

interface ServersProps {
  addresses: string[];
  vendors: Schemas["VendorItem"][];
  onChange: (plan: Plan) => void;
}

/** Says where it would look for model servers, and looks when it is told to. */
function Servers({ addresses, vendors, onChange }: ServersProps) {
  const t = useTexts();
  const [found, setFound] = useState<Schemas["ModelServerItem"][] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const look = () => {
    dataOf(api.POST("/api/setup/servers")).then(({ servers }) => setFound(servers), setFailure);
  };
  return (
    <div className="setup-vendor">
      <p className="dim">{t("setup.look.where", { addresses: addresses.join(", ") })}</p>
      <Button onClick={look}>{t("setup.look")}</Button>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {found?.length === 0 && <Notice kind="info">{t("setup.look.none")}</Notice>}
      {found?.map((server) => {
        const vendor = vendors.find((one) => one.adapter === server.adapter);
        return vendor && (
          <Button key={server.address} onClick={() => onChange(planForServer(vendor, server))}>
            {t("setup.look.use", { name: server.name, model: server.models?.[0] ?? "–" })}
          </Button>
        );
      })}
    </div>
  );
}
