/** The limits of budgets: routes of the plugin, which the OpenAPI document does not have. */
import { ApiError, errorOf } from "../api/client";

const PLACE = "/x/trunkline-budget";

/** A limit by its key in `[plugins.budget]`, with its value now and in trunkline.toml. `null` is no limit. */
export interface Limit {
  key: string;
  value: number | null;
  configured: number | null;
}

/** What is used of a budget: millionths of a US dollar for `spend`, else requests. It begins anew at `opens_at`. */
export interface Budget {
  measure: "spend" | "loops";
  block: string;
  window: string;
  used: number;
  limit: number;
  opens_at: string | null;
}

export interface LimitsAndUse {
  limits: Limit[];
  budgets: Budget[];
}

/** All limits, and what is used of them; `null` if the plugin is off. */
export async function loadLimits(): Promise<LimitsAndUse | null> {
  try {
    const [{ limits }, { budgets }] = await Promise.all([ask<Pick<LimitsAndUse, "limits">>("limits"), ask<Pick<LimitsAndUse, "budgets">>("budgets")]);
    return { limits, budgets };
  } catch (failure) {
    if (failure instanceof ApiError && failure.status === 404) return null;
    throw failure;
  }
}

/** Sets a limit for the next calls; without a value that of trunkline.toml counts again. */
export async function setLimit(key: string, value: number | null): Promise<void> {
  await ask("limits", { method: "POST", body: JSON.stringify({ key, value }) });
}

async function ask<T>(name: string, request: RequestInit = {}): Promise<T> {
  const response = await fetch(`${PLACE}/${name}`, { ...request, credentials: "same-origin" }).catch(() => {
    throw new ApiError(0, "unreachable", "", "");
  });
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response, body);
  return body as T;
}
