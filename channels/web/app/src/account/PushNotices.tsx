/** Push notices of the account: asks for them, lists, tries and ends them. */
import { useCallback, useEffect, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLanguage, useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { hasPush, pushProblem, turnOffNotices, turnOnNotices } from "./push";

const LONGEST_LABEL = 100;
const OUTCOMES: Record<Schemas["PushTest"]["outcome"], TextKey> = {
  delivered: "push.delivered",
  gone: "push.gone",
  failed: "push.failed",
};

export function PushNotices() {
  const t = useTexts();
  const [state, setState] = useState<Schemas["PushState"] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const load = useCallback(() => {
    dataOf(api.GET("/api/push")).then(setState, setFailure);
  }, []);
  useEffect(load, [load]);
  return (
    <section>
      <h2>{t("push.title")}</h2>
      <p>{t("push.how")}</p>
      {state !== null && <NewNotices publicKey={state.public_key} onAdded={load} />}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {state?.subscriptions.length === 0 && <p className="dim">{t("push.none")}</p>}
      <ul className="cards">
        {state?.subscriptions.map((one) => (
          <SubscriptionCard key={one.id} subscription={one} onChanged={load} onFailure={setFailure} />
        ))}
      </ul>
    </section>
  );
}

function NewNotices({ publicKey, onAdded }: { publicKey: string; onAdded: () => void }) {
  const { t, language } = useLanguage();
  const [label, setLabel] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  if (publicKey === "") return <Notice kind="info">{t("push.plugin")}</Notice>;
  if (!hasPush()) return <Notice kind="info">{t("push.where")}</Notice>;
  const add = (event: SyntheticEvent) => {
    event.preventDefault();
    setFailure(null);
    turnOnNotices(publicKey, label.trim(), language).then(() => {
      setLabel("");
      onAdded();
    }, setFailure);
  };
  const key = pushProblem(failure);
  return (
    <form className="card-row" onSubmit={add}>
      <input aria-label={t("push.label")} placeholder={t("push.label")} value={label} maxLength={LONGEST_LABEL} required onChange={(event) => setLabel(event.target.value)} />
      <Button kind="primary" type="submit">
        {t("push.add")}
      </Button>
      {failure !== null && <Notice kind="error">{key === null ? sentence(t, failure) : t(key)}</Notice>}
    </form>
  );
}

interface CardProps {
  subscription: Schemas["PushSubscription"];
  onChanged: () => void;
  onFailure: (error: unknown) => void;
}

function SubscriptionCard({ subscription, onChanged, onFailure }: CardProps) {
  const { t, locale } = useLanguage();
  const [outcome, setOutcome] = useState<Schemas["PushTest"]["outcome"] | null>(null);
  const { id } = subscription;
  const test = () => {
    dataOf(api.POST("/api/push/{id}/test", { params: { path: { id } } })).then((done) => setOutcome(done.outcome), onFailure);
  };
  const added = new Date(subscription.created).toLocaleDateString(locale, { dateStyle: "medium" });
  return (
    <li className="card card-row">
      <span>
        {subscription.label || id}
        <br />
        <span className="dim">{t("push.state", { host: subscription.host, added })}</span>
        {outcome !== null && <Notice kind={outcome === "delivered" ? "info" : "error"}>{t(OUTCOMES[outcome])}</Notice>}
      </span>
      <Button onClick={test}>{t("push.test")}</Button>
      <Button kind="danger" onClick={() => void turnOffNotices(id).then(onChanged, onFailure)}>
        {t("push.remove")}
      </Button>
    </li>
  );
}
