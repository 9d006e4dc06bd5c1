/** One turn: the message, the parts of its answer, and how it ended. */
import { lazy, memo, Suspense } from "react";

import { useTexts } from "../i18n";
import { ApiError } from "../api/client";
import { sentence } from "../i18n/errors";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { BranchStepper } from "./BranchStepper";
import { hudOf } from "./hud";
import { GivenFiles } from "./GivenFiles";
import { HudView } from "./HudView";
import { ToolCard } from "./ToolCard";
import { TurnActions } from "./TurnActions";
import type { Part, StatusPart, Turn } from "./turn";
import type { Branch } from "./useBranches";

const loadMarkdown = () => import("../markdown/Markdown");
const Markdown = lazy(loadMarkdown);

/** Load what an answer needs after the first screen and before the first answer, which would change its height else. */
export function prepareAnswers(): void {
  setTimeout(() => void loadMarkdown().catch(() => undefined), 300);
}

interface Props {
  conversation: string;
  turn: Turn;
  /** What else follows the turn before this one, if anything does. */
  branches: Branch[] | undefined;
}

export const TurnView = memo(function TurnView({ conversation, turn, branches }: Props) {
  const t = useTexts();
  return (
    <article className="turn" aria-busy={turn.phase === "running"}>
      {branches && <BranchStepper branches={branches} turn={turn.id} />}
      {turn.questions.map((question, index) => (
        <div key={index} className="question">
          <h2 className="hidden">{t("chat.you")}</h2>
          <p>{question}</p>
        </div>
      ))}
      {turn.files.length > 0 && (
        <ul className="attachments" aria-label={t("attach.files")}>
          {turn.files.map((name, index) => (
            <li key={index} className="badge">{visible(name)}</li>
          ))}
        </ul>
      )}
      <div className="answer">
        <h2 className="hidden">{t("chat.agent")}</h2>
        {turn.parts.map((part, index) => (
          <PartView key={part.kind === "tool" ? part.id : index} conversation={conversation} turn={turn} part={part} isLast={index === turn.parts.length - 1} />
        ))}
        <Outcome turn={turn} />
      </div>
      {turn.phase === "ended" && <TurnActions conversation={conversation} turn={turn} />}
    </article>
  );
});

function PartView({ conversation, turn, part, isLast }: { conversation: string; turn: Turn; part: Part; isLast: boolean }) {
  if (part.kind === "tool") {
    return (
      <>
        <ToolCard turn={turn.id} part={part} isOver={turn.phase === "ended"} />
        <GivenFiles conversation={conversation} files={part.files} />
      </>
    );
  }
  if (part.kind === "steer") return <p className="steer">{part.text}</p>;
  if (part.kind === "thought") return <Thought text={part.text} />;
  if (part.kind === "status") return <StatusView part={part} />;
  return (
    <Suspense fallback={<p className="plain-text">{visible(part.text)}</p>}>
      <Markdown text={part.text} isGrowing={isLast && turn.phase !== "ended"} />
    </Suspense>
  );
}

/** The HUD as gauges; any other status as its text. */
function StatusView({ part }: { part: StatusPart }) {
  const hud = hudOf(part.name, part.data);
  return hud === null ? <pre className="status-box">{visible(part.text)}</pre> : <HudView hud={hud} />;
}

function Thought({ text }: { text: string }) {
  const t = useTexts();
  return (
    <details className="thought">
      <summary>{t("chat.thought")}</summary>
      <p className="plain-text">{visible(text)}</p>
    </details>
  );
}

/** How the turn stands or ended, where that is not plain from the answer. */
function Outcome({ turn }: { turn: Turn }) {
  const t = useTexts();
  if (turn.phase === "sending") return <p className="progress">{t("chat.sending")}</p>;
  if (turn.phase === "waiting" && !turn.parts.some((part) => part.kind === "tool" && part.state === "waiting")) {
    return <p className="progress">{t("chat.queued")}</p>;
  }
  if (turn.phase === "running" && turn.parts.at(-1)?.kind !== "text") return <p className="progress">{t("chat.working")}</p>;
  if (turn.failure !== null) {
    return <Notice kind="error">{sentence(t, new ApiError(500, turn.failure.code, turn.id, turn.failure.reason))}</Notice>;
  }
  const notes = { cancelled: "chat.cancelled", stopped: "chat.stopped", max_tokens: "chat.maxTokens", content_filter: "chat.filtered" } as const;
  const note = notes[turn.finish as keyof typeof notes] as (typeof notes)[keyof typeof notes] | undefined;
  return note === undefined ? null : <Notice kind="info">{t(note)}</Notice>;
}
