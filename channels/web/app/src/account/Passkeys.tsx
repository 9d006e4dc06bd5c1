/** The passkeys of the account: adds, lists and removes them. */
import { useCallback, useEffect, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { addPasskey, hasPasskeys, passkeyProblem } from "./passkeys";

const LONGEST_LABEL = 100;

export function Passkeys() {
  const t = useTexts();
  const [states, setStates] = useState<Schemas["PasskeyStates"] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const load = useCallback(() => {
    dataOf(api.GET("/api/passkeys")).then(setStates, setFailure);
  }, []);
  useEffect(load, [load]);
  const remove = (id: string) => {
    setFailure(null);
    dataOf(api.DELETE("/api/passkeys/{id}", { params: { path: { id } } })).then(() => {
      load();
      if (id === states?.current) window.dispatchEvent(new Event("trunkline:signed-out"));
    }, setFailure);
  };
  return (
    <section>
      <h2>{t("passkeys.title")}</h2>
      <p className="dim">{t("passkeys.how")}</p>
      {hasPasskeys() ? <NewPasskey onAdded={load} /> : <Notice kind="info">{t("passkeys.where", { address: localAddress() })}</Notice>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {states?.passkeys.length === 0 && <p className="dim">{t("passkeys.none")}</p>}
      <ul className="cards">
        {states?.passkeys.map((one) => (
          <PasskeyCard key={one.id} passkey={one} isCurrent={one.id === states.current} onRemove={() => remove(one.id)} />
        ))}
      </ul>
    </section>
  );
}

/** The page on the machine of Trunkline itself, under the name at which a browser has passkeys without https. */
function localAddress(): string {
  return `http://localhost:${window.location.port || "8420"}/pair`;
}

function NewPasskey({ onAdded }: { onAdded: () => void }) {
  const t = useTexts();
  const [label, setLabel] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const add = (event: SyntheticEvent) => {
    event.preventDefault();
    setFailure(null);
    addPasskey(label.trim()).then(() => {
      setLabel("");
      onAdded();
    }, setFailure);
  };
  const key = failure instanceof DOMException ? passkeyProblem(failure) : null;
  return (
    <form className="card-row" onSubmit={add}>
      <input aria-label={t("passkeys.label")} placeholder={t("passkeys.label")} value={label} maxLength={LONGEST_LABEL} required onChange={(event) => setLabel(event.target.value)} />
      <Button kind="primary" type="submit">
        {t("passkeys.add")}
      </Button>
      {failure !== null && <Notice kind="error">{key === null ? sentence(t, failure) : t(key)}</Notice>}
    </form>
  );
}

interface CardProps {
  passkey: Schemas["Passkey"];
  isCurrent: boolean;
  onRemove: () => void;
}

function PasskeyCard({ passkey, isCurrent, onRemove }: CardProps) {
  const { t, locale } = useLanguage();
  const [isAsking, setAsking] = useState(false);
  const day = (at: string) => new Date(at).toLocaleDateString(locale, { dateStyle: "medium" });
  const name = passkey.label || passkey.id;
  return (
    <li className="card card-row">
      <span>
        {name}
        {isCurrent && <span className="badge">{t("passkeys.current")}</span>}
        <br />
        <span className="dim">
          {t("passkeys.state", { host: passkey.host, scope: passkey.scope, added: day(passkey.created), used: passkey.used ? day(passkey.used) : t("passkeys.never") })}
        </span>
      </span>
      <Button kind="danger" onClick={() => setAsking(true)}>
        {t("passkeys.remove")}
      </Button>
      {isAsking && (
        <Dialog title={t("passkeys.remove.title", { name })} submit={t("passkeys.remove")} isDangerous onSubmit={onRemove} onClose={() => setAsking(false)}>
          <p>{t("passkeys.remove.how")}</p>
        </Dialog>
      )}
    </li>
  );
}
