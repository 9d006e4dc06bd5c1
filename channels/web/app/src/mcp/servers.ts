/** The MCP servers: routes of the plugin, which the OpenAPI document does not have. */
import { askPlugin, unlessOff } from "../api/plugin";

const PLACE = "trunkline-mcp/servers";

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
export const loadServers = () => unlessOff(ask<Servers>(""));

export const addServer = (name: string, block: string, entry: Entry) => ask<Servers>("", "POST", { name, block, entry });

export const changeServer = (server: string, entry: Entry) => ask<Servers>("", "PATCH", { server, entry });

export const removeServer = (server: string) => ask<Servers>("/remove", "POST", { server });

export const testServer = (server: string) => ask<Server>("/test", "POST", { server });

function ask<T>(path: string, method = "GET", body?: object): Promise<T> {
  return askPlugin<T>(`${PLACE}${path}`, method, body);
}
