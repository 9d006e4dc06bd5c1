/** With whom a block is shared, for the owner: who may do what there, a further share, and the end of one. */
import { useCallback, useId, useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";

const ACTIONS = ["read", "chat", "approve", "operate"] as const;
type Action = (typeof ACTIONS)[number];

export function BlockShares({ block }: { block: string }) {
  const t = useTexts();
  const ask = useCallback(async () => {
    const params = { path: { name: block } };
    const [shares, people] = await Promise.all([
      dataOf(api.GET("/api/blocks/{name}/shares", { params })),
      dataOf(api.GET("/api/identities")),
    ]);
    const others = people.identities.filter((one) => one.type !== "owner" && one.status === "active");
    return { shares: shares.shared_with, people: others };
  }, [block]);
  const { data, failure, reload } = useLoaded(ask);
  const [refused, setRefused] = useState<unknown>(null);
  const run = (request: Promise<unknown>) => {
    setRefused(null);
    request.then(reload, setRefused);
  };
  const wrong = refused ?? failure;
  return (
    <section className="settings" aria-label={t("blocks.shares")}>
      {wrong !== null && <Notice kind="error">{sentence(t, wrong)}</Notice>}
      {data?.shares.length === 0 && <p>{t("blocks.shares.none")}</p>}
      {data !== null && data.shares.length > 0 && (
        <ul>
          {data.shares.map((one) => (
            <Share key={one.policy} share={one} onEnd={() => run(end(block, one.identity))} />
          ))}
        </ul>
      )}
      {data !== null && <NewShare people={data.people} onShare={(identity, action) => run(share(block, identity, action))} />}
    </section>
  );
}

/** One share. A policy that is about more than this block and person is changed where it was made. */
function Share({ share, onEnd }: { share: Schemas["BlockShare"]; onEnd: () => void }) {
  const t = useTexts();
  const { identity, action, block, resource } = share;
  const isKnown = (ACTIONS as readonly string[]).includes(action);
  const may = isKnown ? t(`blocks.shares.${action}` as TextKey) : action;
  const isOwn = resource === `block:${block}` && isKnown && /^[a-z0-9]/.test(identity) && !identity.includes(":");
  return (
    <li>
      {visible(identity)}: {may}
      {share.is_conditional && <> ({t("blocks.shares.conditional")})</>}{" "}
      {isOwn ? <Button onClick={onEnd}>{t("blocks.shares.end", { name: visible(identity) })}</Button> : <span className="dim">{t("blocks.shares.policy", { policy: share.policy })}</span>}
    </li>
  );
}

function NewShare({ people, onShare }: { people: Schemas["IdentityRecord"][]; onShare: (identity: string, action: Action) => void }) {
  const t = useTexts();
  const [who, what] = [useId(), useId()];
  const [chosen, setChosen] = useState("");
  const [action, setAction] = useState<Action>("chat");
  const identity = chosen || people[0]?.id;
  if (identity === undefined) return <p className="dim">{t("blocks.shares.nobody")}</p>;
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    onShare(identity, action);
  };
  return (
    <form className="choices" onSubmit={submit}>
      <label htmlFor={who}>{t("blocks.shares.who")}</label>
      <select id={who} value={identity} onChange={(event) => setChosen(event.target.value)}>
        {people.map((one) => (
          <option key={one.id} value={one.id}>
            {one.display_name === one.id ? one.id : `${visible(one.display_name)} (${one.id})`}
          </option>
        ))}
      </select>
      <label htmlFor={what}>{t("blocks.shares.may")}</label>
      <select id={what} value={action} onChange={(event) => setAction(event.target.value as Action)}>
        {ACTIONS.map((one) => (
          <option key={one} value={one}>{t(`blocks.shares.${one}`)}</option>
        ))}
      </select>
      <Button kind="primary" type="submit">{t("blocks.shares.add")}</Button>
    </form>
  );
}

function share(name: string, identity: string, action: Action): Promise<unknown> {
  return dataOf(api.PUT("/api/blocks/{name}/shares/{identity}", { params: { path: { name, identity } }, body: { action } }));
}

function end(name: string, identity: string): Promise<unknown> {
  return dataOf(api.DELETE("/api/blocks/{name}/shares/{identity}", { params: { path: { name, identity } } }));
}
