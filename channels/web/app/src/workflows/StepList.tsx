/** The graph of a workflow as a list: each step with its state in a run, and the ways out of it. A way leads to its step
 * by the keyboard, too. */
import { useId } from "react";

import { useTexts } from "../i18n";
import { visible } from "../ui/visible";
import type { Edge, Step, StepState } from "./workflows";

export function StepList({ steps, states = {} }: { steps: Step[]; states?: Record<string, StepState> }) {
  const t = useTexts();
  const prefix = useId();
  const show = (event: React.MouseEvent, step: string) => {
    event.preventDefault(); // the address names the page
    document.getElementById(prefix + step)?.focus();
  };
  return (
    <ol className="steps" aria-label={t("workflows.steps")}>
      {steps.map((step) => {
        const state = states[step.id];
        return (
          <li key={step.id} id={prefix + step.id} tabIndex={-1} data-state={state} data-type={step.type}>
            <p>
              <strong>{visible(step.name)}</strong> {step.name !== step.id && <code>{step.id}</code>}{" "}
              <span className="badge">{t(`workflows.type.${step.type}`)}</span>{" "}
              {state && <span className={`badge ${state === "failed" ? "badge-ERROR" : ""}`}>{t(`workflows.step.${state}`)}</span>}{" "}
              {step.type === "action" && <code>{visible(step.action)}</code>}
            </p>
            <ul>
              {step.edges.map((edge) => (
                <li key={`${edge.on} ${edge.to}${edge.end}`}>
                  {wayOf(edge) && <>{t(`workflows.way.${wayOf(edge)}` as "workflows.way.approve")} </>}→{" "}
                  {edge.to ? <a href="#content" onClick={(event) => show(event, edge.to)}>{edge.to}</a> : <em>{t(edge.end === "failed" ? "workflows.status.failed" : "workflows.status.completed")}</em>}
                </li>
              ))}
            </ul>
          </li>
        );
      })}
    </ol>
  );
}

const WAYS = ["approve", "reject", "error", "true", "false"];

const wayOf = (edge: Edge) => (WAYS.includes(edge.on) ? edge.on : "");
