/** A question about a call: what would happen, and the decision. Nothing is decided by Enter, Escape or silence. */
import { useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLanguage, useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { Effect } from "./Effect";

interface Props {
  turn: string;
  call: string;
  hash: string;
  question: string;
  detail: Schemas["ApprovalDetail"] | null;
  expiresAt: string | null;
  onDecided?: () => void;
}

export function ApprovalQuestion({ turn, call, hash, question, detail, expiresAt, onDecided }: Props) {
  const { t, locale } = useLanguage();
  const [isSent, setSent] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const decide = (decision: Omit<Schemas["DecisionRequest"], "hash">) => {
    setSent(true);
    setFailure(null);
    const path = { path: { id: turn, call } };
    dataOf(api.POST("/api/turns/{id}/calls/{call}/decision", { params: path, body: { hash, ...decision } })).then(
      () => onDecided?.(),
      (error: unknown) => {
        setSent(false);
        setFailure(error);
      },
    );
  };
  const time = expiresAt === null ? "" : new Date(expiresAt).toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
  return (
    <section className="approval" role="group" aria-label={question}>
      <p className="approval-question">{question}</p>
      {detail !== null && <Effect detail={detail} />}
      <Permitted scope={detail?.owner_only ? "owner" : "approve"} everywhere={detail?.owner_only ?? false}>
        {detail?.kind === "question" ? (
          <Answer detail={detail} isSent={isSent} decide={decide} />
        ) : (
          <Choices detail={detail} isSent={isSent} decide={decide} />
        )}
      </Permitted>
      {time && <p className="dim">{t("approval.until", { time })}</p>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
    </section>
  );
}

type Decide = (decision: Omit<Schemas["DecisionRequest"], "hash">) => void;

interface PartProps {
  detail: Schemas["ApprovalDetail"] | null;
  isSent: boolean;
  decide: Decide;
}

function Choices({ detail, isSent, decide }: PartProps) {
  const t = useTexts();
  return (
    <>
      <div className="choices">
        <Button kind="primary" disabled={isSent} onClick={() => decide({ allow: true })}>
          {t("approval.yes")}
        </Button>
        {detail?.shape && (
          <>
            <Button disabled={isSent} onClick={() => decide({ allow: true, scope: "conversation" })}>
              {t("approval.conversation")}
            </Button>
            <Button disabled={isSent} onClick={() => decide({ allow: true, scope: "always" })}>
              {t("approval.always")}
            </Button>
          </>
        )}
        <Button kind="danger" disabled={isSent} onClick={() => decide({ allow: false })}>
          {t("approval.no")}
        </Button>
      </div>
      {detail?.covers && <p className="dim">{t("approval.covers", { calls: detail.covers })}</p>}
    </>
  );
}

function Answer({ detail, isSent, decide }: PartProps) {
  const t = useTexts();
  const [answer, setAnswer] = useState("");
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (answer.trim()) decide({ answer: answer.trim() });
  };
  return (
    <form className="choices" onSubmit={submit}>
      {(detail?.options ?? []).map((option) => (
        <Button key={option} disabled={isSent} onClick={() => decide({ answer: option })}>
          {option}
        </Button>
      ))}
      <input aria-label={t("approval.answer")} value={answer} onChange={(event) => setAnswer(event.target.value)} />
      <Button kind="primary" type="submit" disabled={isSent}>
        {t("approval.send")}
      </Button>
      <Button kind="danger" disabled={isSent} onClick={() => decide({ allow: false })}>
        {t("approval.skip")}
      </Button>
    </form>
  );
}
