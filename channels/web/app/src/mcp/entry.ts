/** What a person types about a server, and the entry of mcp.json that it stands for. */
import type { Entry, Server } from "./servers";

export interface Fields {
  kind: "program" | "address";
  name: string;
  block: string;
  /** One word on each line: the program, then its arguments. */
  words: string;
  url: string;
  /** `NAME=VARIABLE` on each line. */
  variables: string;
  readable: string;
  folder: string;
  network: boolean;
  isTrusted: boolean;
}

export const EMPTY: Fields = {
  kind: "program", name: "", block: "", words: "", url: "", variables: "", readable: "", folder: "", network: false, isTrusted: false,
};

export function fieldsOf(server: Server): Fields {
  const [block = "", name = ""] = server.server.includes("/") ? server.server.split("/") : ["", server.server];
  const given = Object.entries(server.url ? server.headers : server.env);
  return {
    kind: server.url ? "address" : "program",
    name,
    block,
    words: server.command.join("\n"),
    url: server.url,
    variables: given.filter(([, variable]) => variable !== null).map(([key, variable]) => `${key}=${variable}`).join("\n"),
    readable: server.readable.join("\n"),
    folder: server.folder,
    network: server.network !== false,
    isTrusted: server.trust === "trusted",
  };
}

/** The names whose text is in the file: nobody sees it here, and it stays. */
export function keptNames(server: Server): string[] {
  return Object.entries(server.url ? server.headers : server.env).filter(([, variable]) => variable === null).map(([name]) => name);
}

/** A new entry. */
export function entryOf(fields: Fields): Entry {
  const [command = "", ...args] = fields.words.split("\n").map((word) => word.trim()).filter(Boolean);
  const trust = fields.isTrusted ? { trust: "trusted" } : {};
  const variables = variablesOf(fields.variables);
  if (fields.kind === "address") {
    return { url: fields.url.trim(), ...filled({ headers: variables }), ...trust };
  }
  return {
    command,
    ...filled({ args, env: variables, readable: lines(fields.readable), folder: fields.folder.trim() }),
    network: fields.network,
    ...trust,
  };
}

/** A merge patch that makes the entry of a server the one of the fields. What the form does not show stays. */
export function patchOf(server: Server, fields: Fields): Entry {
  const entry = entryOf(fields);
  const removed = Object.fromEntries(SHOWN[fields.kind].filter((key) => !(key in entry)).map((key) => [key, null]));
  const key = fields.kind === "address" ? "headers" : "env";
  const gone = Object.keys(server[key]).filter((name) => server[key][name] !== null && !(name in variablesOf(fields.variables)));
  const variables = { ...(entry[key] ?? {}), ...Object.fromEntries(gone.map((name) => [name, null])) };
  const patch = { ...removed, ...entry, ...filled({ [key]: variables }) };
  if (server.network !== "host") return patch;
  return Object.fromEntries(Object.entries(patch).filter(([name]) => name !== "network")); // changed in the file alone
}

const SHOWN = {
  program: ["args", "readable", "folder", "trust"],
  address: ["trust"],
};

function variablesOf(text: string): Record<string, { env: string }> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const [name = "", variable = ""] = line.split("=", 2).map((part) => part.trim());
      return [name, { env: variable || name }];
    }),
  );
}

function lines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** The keys that say something. */
function filled(entry: Record<string, string | string[] | object>): Entry {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => (typeof value === "string" ? value !== "" : Object.keys(value).length > 0)));
}
