/** The calls of all conversations and channels that wait for a person, and what was allowed for longer. */
import { useCallback, useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { usePolled } from "../api/usePolled";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Permitted } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { ApprovalQuestion } from "./ApprovalQuestion";
import "../styles/pages.css";

const EVERY_MS = 3000;

export default function ApprovalsPage() {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/approvals")), []);
  const { data, failure, refresh } = usePolled(ask, EVERY_MS);
  const open = (data?.approvals ?? []).filter((one) => !one.settled);
  return (
    <div className="page">
      <h1>{t("nav.approvals")}</h1>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data !== null && open.length === 0 && <p className="dim">{t("approvals.none")}</p>}
      <ul className="cards">
        {open.map((one) => (
          <li key={one.id} className="card">
            <p>
              <code>{one.tool}</code> · {t("approvals.of", { block: one.block })} ·{" "}
              <a href={addressOf("chat", one.conversation_id)}>{t("approvals.conversation")}</a>
            </p>
            <ApprovalQuestion turn={one.turn} call={one.call} hash={one.hash} question={one.question} detail={one.detail} expiresAt={one.expires_at} onDecided={refresh} />
          </li>
        ))}
      </ul>
      <Grants />
    </div>
  );
}

function Grants() {
  const t = useTexts();
  const [grants, setGrants] = useState<Schemas["Policy"][]>([]);
  const [failure, setFailure] = useState<unknown>(null);
  const load = useCallback(() => {
    dataOf(api.GET("/api/approvals/granted")).then(({ grants: found }) => setGrants(found), setFailure);
  }, []);
  useEffect(load, [load]);
  const revoke = (id: string) => {
    dataOf(api.DELETE("/api/approvals/granted/{id}", { params: { path: { id } } })).then(load, setFailure);
  };
  return (
    <section>
      <h2>{t("approvals.granted")}</h2>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {grants.length === 0 && <p className="dim">{t("approvals.granted.none")}</p>}
      {grants.length > 0 && (
        <Permitted scope="owner">
          <ul className="cards">
            {grants.map((grant) => (
              <li key={grant.id} className="card card-row">
                <span>{grant.note || `${grant.resource} ${grant.action}`}</span>
                <Button kind="danger" onClick={() => revoke(grant.id ?? "")}>
                  {t("approvals.revoke")}
                </Button>
              </li>
            ))}
          </ul>
        </Permitted>
      )}
    </section>
  );
}
