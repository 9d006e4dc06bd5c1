/** The state of the platform, from the envelopes that say it. Envelopes in, a new state out. */
import type { Envelope, Lane } from "../api/envelopes";

export interface ActiveTurn {
  turn: string;
  block: string;
  conversation: string;
  status: string;
  lane?: Lane;
}

export interface WorkerState {
  worker: string;
  worker_kind: string;
  host?: string;
  alive?: boolean;
  draining?: boolean;
  restarts?: number;
  trouble?: string;
}

export interface SpentBudget {
  measure: string;
  window: string;
  block?: string;
  used: number;
  limit: number;
}

export interface Activity {
  turns: ActiveTurn[];
  /** The turns that ended while the page was open, the newest first. */
  ended: (ActiveTurn & { reason: string })[];
  workers: WorkerState[];
  budgets: SpentBudget[];
  panic: boolean;
}

export const NOTHING: Activity = { turns: [], ended: [], workers: [], budgets: [], panic: false };

const ENDED_KEPT = 20;

export function afterEnvelope(state: Activity, { type, payload }: Envelope): Activity {
  if (type === "panic") return { ...state, panic: payload["on"] === true };
  if (type === "bankrupt") return { ...state, budgets: withBudget(state.budgets, payload as unknown as SpentBudget) };
  if (type !== "status") return state;
  switch (payload["kind"]) {
    case "turn":
      return withTurn(state, payload as unknown as ActiveTurn & { reason?: string });
    case "worker":
      return { ...state, workers: withWorker(state.workers, payload as unknown as WorkerState) };
    case "budget_reset":
      return { ...state, budgets: state.budgets.filter((one) => keyOf(one) !== keyOf(payload as unknown as SpentBudget)) };
    default:
      return state;
  }
}

function withTurn(state: Activity, { reason, ...turn }: ActiveTurn & { reason?: string }): Activity {
  const others = state.turns.filter((one) => one.turn !== turn.turn);
  if (turn.status !== "finished") return { ...state, turns: [...others, turn] };
  if (others.length === state.turns.length) return state; // it ended before the page was opened
  return { ...state, turns: others, ended: [{ ...turn, reason: reason ?? "" }, ...state.ended].slice(0, ENDED_KEPT) };
}

function withWorker(workers: WorkerState[], worker: WorkerState): WorkerState[] {
  const others = workers.filter((one) => one.worker !== worker.worker);
  const all = worker.alive === false ? others : [...others, worker];
  return all.sort((one, other) => one.worker_kind.localeCompare(other.worker_kind));
}

function withBudget(budgets: SpentBudget[], budget: SpentBudget): SpentBudget[] {
  return [...budgets.filter((one) => keyOf(one) !== keyOf(budget)), budget];
}

function keyOf(budget: SpentBudget): string {
  return [budget.measure, budget.window, budget.block ?? ""].join("/");
}
