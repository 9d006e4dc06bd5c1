/** What all agents think and do now, as it happens: the last 500 entries, the newest first. */
import { memo, useState } from "react";

import { useLanguage } from "../i18n";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import type { Entry } from "./thoughts";
import { useThoughts } from "./useThoughts";

export function ThoughtStream() {
  const { t } = useLanguage();
  const [isPaused, setPaused] = useState(false);
  const { entries, isConnected } = useThoughts(isPaused);
  return (
    <section aria-label={t("activity.thoughts")}>
      <div className="card-row">
        <h2>{t("activity.thoughts")}</h2>
        <Button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>{t("activity.pause")}</Button>
      </div>
      {!isConnected && <Notice kind="error">{t("error.unreachable")}</Notice>}
      {entries.length === 0 && <p className="dim">{t("activity.thoughts.none")}</p>}
      <ol className="thoughts">
        {entries.toReversed().map((entry) => (
          <Row key={entry.key} entry={entry} />
        ))}
      </ol>
    </section>
  );
}

/** An entry that has not changed is not drawn again. */
const Row = memo(function Row({ entry }: { entry: Entry }) {
  const { t, locale } = useLanguage();
  return (
    <li data-kind={entry.kind}>
      <p className="dim">
        <time dateTime={entry.at}>{new Date(entry.at).toLocaleTimeString(locale)}</time>{" "}
        <span className="badge">{t(`activity.thoughts.${entry.kind}`)}</span>{" "}
        {entry.lane !== undefined && <span className="badge" data-lane={entry.lane}>{t(`activity.lane.${entry.lane}`)}</span>}{" "}
        <a href={addressOf("chat", entry.conversation, entry.turn)}>{t("approvals.of", { block: entry.block })}</a>
      </p>
      <p>{entry.text}</p>
    </li>
  );
});
