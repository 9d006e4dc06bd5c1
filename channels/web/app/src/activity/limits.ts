/** The limits of budgets: routes of the plugin, which the OpenAPI document does not have. */
import { ApiError, errorOf } from "../api/client";

const PLACE = "/x/trunkline-budget/limits";

/** A limit by its key in `[plugins.budget]`, with its value now and in trunkline.toml. `null` is no limit. */
export interface Limit {
  key: string;
  value: number | null;
  configured: number | null;
}

/** All limits; `null` if the plugin is off. */
export async function loadLimits(): Promise<Limit[] | null> {
  try {
    return await ask({ method: "GET" });
  } catch (failure) {
    if (failure instanceof ApiError && failure.status === 404) return null;
    throw failure;
  }
}

/** Sets a limit for the next calls; without a value that of trunkline.toml counts again. */
export function setLimit(key: string, value: number | null): Promise<Limit[]> {
  return ask({ method: "POST", body: JSON.stringify({ key, value }) });
}

async function ask(request: RequestInit): Promise<Limit[]> {
  const response = await fetch(PLACE, { ...request, credentials: "same-origin" }).catch(() => {
    throw new ApiError(0, "unreachable", "", "");
  });
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response, body);
  return (body as { limits: Limit[] }).limits;
}
