/** Workflows and their runs: routes of the plugin. */
import { askPlugin, unlessOff } from "../api/plugin";

/** A way out of a step: to another step, or to an end of the run. */
export interface Edge {
  on: string;
  to: string;
  end: string;
}

export interface Step {
  id: string;
  name: string;
  type: "action" | "approval" | "conditional";
  action: string;
  edges: Edge[];
}

/** A workflow, or a proposal. One with problems has no steps. An input that is null must be given. */
export interface Workflow {
  name: string;
  text: string;
  sha256: string;
  description: string;
  inputs: Record<string, unknown>;
  steps: Step[];
  problems: string[];
}

export interface Workflows {
  workflows: Workflow[];
  proposals: Workflow[];
}

export type StepState = "running" | "waiting_approval" | "done" | "failed";
export type RunStatus = "pending" | "running" | "waiting_approval" | "completed" | "failed" | "cancelled";

export interface Run {
  run: string;
  workflow: string;
  status: RunStatus;
  step: string;
  started_at: string;
  conversation: string;
  turn: string;
  continues: string;
  states: Record<string, StepState>;
  is_edited: boolean;
  detail: string;
}

export interface LogLine {
  step: string;
  call: string;
  tool: string;
  outcome: string;
  by: string;
  result: string;
}

export interface RunDetail extends Run {
  description: string;
  steps: Step[];
  log: LogLine[];
}

const placeOf = (block: string) => `trunkline-workflow/blocks/${encodeURIComponent(block)}`;

/** The workflows of a block; `null` if the plugin is off. */
export const loadWorkflows = (block: string) => unlessOff(askPlugin<Workflows>(`${placeOf(block)}/workflows`));

export const loadRuns = (block: string) => askPlugin<{ runs: Run[] }>(`${placeOf(block)}/runs`);

export const loadRun = (block: string, run: string) => askPlugin<RunDetail>(`${placeOf(block)}/runs/${encodeURIComponent(run)}`);

export const beginRun = (block: string, name: string, inputs: Record<string, unknown>) => askPlugin<Run>(`${placeOf(block)}/workflows/${encodeURIComponent(name)}/run`, "POST", { inputs });

export const installProposal = (block: string, { name, sha256 }: Workflow) => askPlugin<Workflow>(`${placeOf(block)}/proposals/${encodeURIComponent(name)}/install`, "POST", { sha256 });

export const hasEnded = (status: RunStatus) => ["completed", "failed", "cancelled"].includes(status);
