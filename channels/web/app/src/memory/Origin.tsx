/** Who made a change, when, and the way to the turn that made it. */
import { useLanguage } from "../i18n";
import { addressOf } from "../router";

interface Props {
  author: string;
  timestamp: string;
  conversation?: string | null;
  turn?: string | null;
}

export function Origin({ author, timestamp, conversation, turn }: Props) {
  const { t, locale } = useLanguage();
  const time = new Date(timestamp).toLocaleString(locale, { dateStyle: "short", timeStyle: "short" });
  return (
    <p className="dim">
      {author} · <time dateTime={timestamp}>{time}</time>
      {conversation && (
        <>
          {" · "}
          <a href={addressOf("chat", conversation, turn ?? "")}>{t("memory.turn")}</a>
        </>
      )}
    </p>
  );
}
