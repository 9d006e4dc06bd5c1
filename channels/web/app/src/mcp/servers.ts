/** The MCP servers: routes of the plugin, which the OpenAPI document does not have. */
import { ApiError, errorOf } from "../api/client";

const PLACE = "/x/trunkline-mcp/servers";

/** A server of the files. `env` and `headers` have the variable behind each name; null is a text that is in the file. */
export interface Server {
  server: string;
  command: string[];
  url: string;
  env: Record<string, string | null>;
  headers: Record<string, string | null>;
  trust: "untrusted" | "trusted";
  network: boolean | "host";
  folder: string;
  readable: string[];
  disabled: boolean;
  state: "connecting" | "ready" | "failed" | "sign-in" | "disabled" | "off";
  why: string;
  title: string;
  protocol: string;
  tools: string[];
  left_out: string[];
}

export interface Servers {
  is_running: boolean;
  servers: Server[];
  problems: { where: string; what: string }[];
}

/** A JSON merge patch of an entry of mcp.json. */
export type Entry = Record<string, unknown>;

/** All servers; `null` if the plugin is off. */
export async function loadServers(): Promise<Servers | null> {
  try {
    return await ask<Servers>("");
  } catch (failure) {
    if (failure instanceof ApiError && failure.status === 404) return null;
    throw failure;
  }
}

export const addServer = (name: string, block: string, entry: Entry) => ask<Servers>("", "POST", { name, block, entry });

export const changeServer = (server: string, entry: Entry) => ask<Servers>("", "PATCH", { server, entry });

export const removeServer = (server: string) => ask<Servers>("/remove", "POST", { server });

export const testServer = (server: string) => ask<Server>("/test", "POST", { server });

async function ask<T>(path: string, method = "GET", body?: object): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${PLACE}${path}`, { method, credentials: "same-origin", ...sent }).catch(() => {
    throw new ApiError(0, "unreachable", "", "");
  });
  const data: unknown = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response, data);
  return data as T;
}
