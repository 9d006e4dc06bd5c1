/** A call of a tool: its name and arguments, its state and duration, its output while it runs and at its end, the
 * question about it, and the way to undo it. */
import { useTexts } from "../i18n";
import { ApprovalQuestion } from "../approvals/ApprovalQuestion";
import { useMay } from "../session/Permitted";
import { visible } from "../ui/visible";
import { LiveOutputView } from "./LiveOutputView";
import { commitOf } from "./undo";
import { UndoCall } from "./UndoCall";
import type { ToolPart } from "./turn";

const SHORT = 60;
const ICONS = { running: "◌", waiting: "?", done: "✓", failed: "✕" } as const;

export function ToolCard({ turn, part, isOver }: { turn: string; part: ToolPart; isOver: boolean }) {
  const t = useTexts();
  const mayUndo = useMay("owner", { everywhere: true });
  const { approval } = part;
  const commit = mayUndo ? commitOf(part) : null;
  const state = isOver && (part.state === "running" || part.state === "waiting") ? "failed" : part.state;
  return (
    <div className={`tool tool-${state}`}>
      <details>
        <summary>
          <span className="tool-state" aria-hidden="true">
            {ICONS[state]}
          </span>
          <code>{part.name}</code> <span className="dim tool-short">{visible(shortArguments(part.arguments))}</span>
          <span className="hidden">{t(`tool.${state}`)}</span>
          {part.seconds !== null && <span className="dim tool-seconds">{t("tool.seconds", { seconds: part.seconds.toFixed(1) })}</span>}
        </summary>
        <h3>{t("tool.arguments")}</h3>
        <pre>{visible(JSON.stringify(part.arguments, null, 2))}</pre>
        {part.output && (
          <>
            <h3>{t("tool.output")}</h3>
            <pre>{visible(part.output)}</pre>
          </>
        )}
      </details>
      {state === "running" && part.note && <p className="dim tool-note">{visible(part.note)}</p>}
      {state === "running" && part.live.text && <LiveOutputView output={part.live} />}
      {approval !== null && approval.settled === null && !isOver && (
        <ApprovalQuestion turn={turn} call={part.id} hash={approval.hash} question={approval.question} detail={approval.detail} expiresAt={approval.expiresAt} />
      )}
      {approval?.settled && (
        <p className="dim settled">
          {t(approval.settled.allow ? "approval.allowed" : "approval.denied", { by: approval.settled.by })}
        </p>
      )}
      {commit !== null && <UndoCall part={part} commit={commit} />}
    </div>
  );
}

function shortArguments(values: Record<string, unknown>): string {
  const text = Object.entries(values)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}
