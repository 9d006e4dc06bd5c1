/** Requests to routes of plugins, which the OpenAPI document does not have. */
import { ApiError, errorOf } from "./client";

/** The data of a reply. `path` begins with the plugin's name. */
export async function askPlugin<T>(path: string, method = "GET", body?: object): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`/x/${path}`, { method, credentials: "same-origin", ...sent }).catch(() => {
    throw new ApiError(0, "unreachable", "", "");
  });
  const data: unknown = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response, data);
  return data as T;
}

/** The data of a reply; `null` if the plugin is off, so that nothing is at this path. */
export async function unlessOff<T>(reply: Promise<T>): Promise<T | null> {
  try {
    return await reply;
  } catch (failure) {
    if (failure instanceof ApiError && failure.status === 404) return null;
    throw failure;
  }
}
