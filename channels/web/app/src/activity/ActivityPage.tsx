/** Mission control: what happens now, what it costs, how the platform is, what was decided, and what failed. */
import { useTexts } from "../i18n";
import { addressOf } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/activity.css";
import "../styles/pages.css";
import { Agents } from "./Agents";
import { AuditLog } from "./AuditLog";
import { DeadLetters } from "./DeadLetters";
import { Doctor } from "./Doctor";
import { Inspector } from "./Inspector";
import { Now } from "./Now";
import { Platform } from "./Platform";
import { Spend } from "./Spend";
import { ThoughtStream } from "./ThoughtStream";
import { Tasks } from "./Tasks";
import { Trace } from "./Trace";

const VIEWS = ["now", "thoughts", "state", "agents", "tasks", "spend", "platform", "doctor", "audit", "letters"] as const;
type View = (typeof VIEWS)[number];

export default function ActivityPage({ name, part }: { name: string; part: string }) {
  const t = useTexts();
  const view = VIEWS.find((one) => one === name) ?? "now";
  return (
    <div className="page">
      <h1>{t("nav.activity")}</h1>
      <nav className="tabs" aria-label={t("nav.activity")}>
        {VIEWS.map((one) => (
          <a key={one} className="button" href={addressOf("activity", one)} aria-current={one === view && name !== "trace" ? "page" : undefined}>
            {t(`activity.${one}`)}
          </a>
        ))}
      </nav>
      {name === "trace" ? <Trace key={part} turn={part} /> : <ViewOf view={view} isStopAsked={name === "stop"} />}
    </div>
  );
}

function ViewOf({ view, isStopAsked }: { view: View; isStopAsked: boolean }) {
  const isOwner = useMay("owner", { everywhere: true });
  const operatesEverywhere = useMay("operate", { everywhere: true });
  if (view === "now") return <Now isStopAsked={isStopAsked} />;
  if (view === "thoughts") return <ThoughtStream />;
  if (view === "state") return isOwner ? <Inspector /> : <Permitted scope="owner" everywhere>{null}</Permitted>;
  if (view === "agents") return <Agents />;
  if (view === "tasks") return <Tasks />;
  if (view === "spend") return <Spend />;
  if (view === "doctor") return operatesEverywhere ? <Doctor /> : <Permitted scope="operate" everywhere>{null}</Permitted>;
  if (view === "platform") return operatesEverywhere ? <Platform /> : <Permitted scope="operate" everywhere>{null}</Permitted>;
  if (view === "audit") return isOwner ? <AuditLog /> : <Permitted scope="owner" everywhere>{null}</Permitted>;
  return operatesEverywhere ? <DeadLetters /> : <Permitted scope="operate" everywhere>{null}</Permitted>;
}
