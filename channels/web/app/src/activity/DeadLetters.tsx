/** Messages that no worker could handle: why, their text, and the way to send them again or delete them. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useLanguage } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";

export function DeadLetters() {
  const { t } = useLanguage();
  const ask = useCallback(() => dataOf(api.GET("/api/dead-letters")), []);
  const { data, failure, reload } = useLoaded(ask);
  return (
    <section aria-label={t("activity.letters")}>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.dead_letters.length === 0 && <p className="dim">{t("activity.letters.none")}</p>}
      <ul className="cards">
        {data?.dead_letters.map((letter) => (
          <li key={letter.id} className="card"><Letter letter={letter} onChanged={reload} /></li>
        ))}
      </ul>
    </section>
  );
}

function Letter({ letter, onChanged }: { letter: Schemas["DeadLetterItem"]; onChanged: () => void }) {
  const { t, locale } = useLanguage();
  const [detail, setDetail] = useState<Schemas["DeadLetterDetail"] | null>(null);
  const [isAsked, setAsked] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const params = { path: { id: String(letter.id) } };
  const show = () => {
    if (detail !== null) setDetail(null);
    else dataOf(api.GET("/api/dead-letters/{id}", { params })).then(setDetail, setFailure);
  };
  const retry = () => void dataOf(api.POST("/api/dead-letters/{id}/retry", { params })).then(onChanged, setFailure);
  const remove = () => void dataOf(api.DELETE("/api/dead-letters/{id}", { params })).then(onChanged, setFailure);
  return (
    <>
      <p><code>{letter.subject}</code> <span className="badge">{letter.reason}</span></p>
      <p>{letter.detail}</p>
      <p className="dim"><time dateTime={letter.time}>{new Date(letter.time).toLocaleString(locale)}</time> · {letter.source}</p>
      <div className="choices">
        <Button aria-expanded={detail !== null} onClick={show}>{t("activity.letters.show")}</Button>
        <Button onClick={retry}>{t("activity.letters.retry")}</Button>
        <Button kind="danger" onClick={() => setAsked(true)}>{t("blocks.delete")}</Button>
      </div>
      {detail !== null && <pre className="effect">{detail.text}</pre>}
      {detail?.refused && <p className="dim">{detail.refused}</p>}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isAsked && (
        <Dialog title={t("blocks.delete")} submit={t("blocks.delete")} isDangerous onClose={() => setAsked(false)} onSubmit={remove}>
          <p>{t("activity.letters.delete.means")}</p>
        </Dialog>
      )}
    </>
  );
}
