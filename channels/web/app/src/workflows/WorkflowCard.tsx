/** A workflow or a proposal: what is wrong with it, its steps and text, and what only the owner does with it. */
import { useState } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { RunForm } from "./RunForm";
import { StepList } from "./StepList";
import { installProposal, type Run, type Workflow } from "./workflows";

interface Props {
  block: string;
  workflow: Workflow;
  isProposed?: boolean;
  onChanged: () => void;
}

export function WorkflowCard({ block, workflow: one, isProposed = false, onChanged }: Props) {
  const t = useTexts();
  const isOwner = useMay("owner", { everywhere: true });
  const [isOpen, setOpen] = useState(false);
  const [begun, setBegun] = useState<Run | null>(null);
  const isRight = one.problems.length === 0;
  return (
    <li className="card">
      <h2>
        {one.name} {isProposed && <span className="badge">{t("workflows.proposed")}</span>}{" "}
        <span className={`badge ${isRight ? "" : "badge-ERROR"}`}>{t(isRight ? "workflows.right" : "workflows.wrong")}</span>
      </h2>
      {one.description && <p className="written">{visible(one.description)}</p>}
      {!isRight && <ul>{one.problems.map((problem) => <li key={problem} className="written">{visible(problem)}</li>)}</ul>}
      {one.steps.length > 0 && (
        <details>
          <summary>{t("workflows.steps")}</summary>
          <StepList steps={one.steps} />
        </details>
      )}
      <details>
        <summary>{t("workflows.text")}</summary>
        <pre className="effect">{visible(one.text)}</pre>
      </details>
      {isOwner && isRight && !isProposed && (
        <div className="choices">
          <Button kind="primary" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{t("workflows.run")}</Button>
        </div>
      )}
      {isOpen && (
        <RunForm
          block={block}
          workflow={one}
          onBegun={(run) => {
            setBegun(run);
            setOpen(false);
            onChanged();
          }}
        />
      )}
      {begun !== null && <p className="notice notice-info" role="status"><a href={addressOf("workflows", block, begun.run)}>{t("workflows.run.begun")}</a></p>}
      {isOwner && isRight && isProposed && <Install block={block} proposal={one} onInstalled={onChanged} />}
    </li>
  );
}

/** The exact text is shown once more, and what is installed is that text. */
function Install({ block, proposal, onInstalled }: { block: string; proposal: Workflow; onInstalled: () => void }) {
  const t = useTexts();
  const [asked, setAsked] = useState<Workflow | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  return (
    <>
      <div className="choices">
        <Button kind="primary" onClick={() => setAsked(proposal)}>{t("workflows.install")}</Button>
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {asked !== null && (
        <Dialog
          title={t("workflows.install.title", { name: asked.name, block })}
          submit={t("workflows.install")}
          onClose={() => setAsked(null)}
          onSubmit={() => void installProposal(block, asked).then(onInstalled, setFailure)}
        >
          <p>{t("workflows.install.means")}</p>
          {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a long text is scrolled by the keyboard */}
          <pre className="effect" tabIndex={0}>{visible(asked.text)}</pre>
        </Dialog>
      )}
    </>
  );
}
