/** The slash commands, with the names and meanings of those of the terminal. Loaded when a line begins with a slash. */
import { api, dataOf, type Schemas } from "../api/client";
import type { TextKey, Translate } from "../i18n";
import { goTo } from "../router";
import { saveConversation } from "./export";
import type { ChatStore, Conversation } from "./store";

/** What a command works on. */
export interface CommandSession {
  conversation: Conversation;
  store: ChatStore;
  t: Translate;
  chooseBlock: (name: string) => void;
}

interface Command {
  name: string;
  usage: string;
  help: TextKey;
  /** Returns what to tell; "" for nothing. Raises ApiError or CommandError. */
  act: (session: CommandSession, rest: string) => Promise<string> | string;
  /** The words that may follow. */
  complete?: () => Promise<string[]>;
}

/** A command that cannot be carried out; the text says what to do. */
export class CommandError extends Error {}

/** Commands that the agent carries out. They are sent as messages. */
const AGENT_COMMANDS = ["tool", "compact", "rebirth"];

const WORD = /^\/([A-Za-z][A-Za-z-]*)(?:\s+([\s\S]*))?$/;

/** A command as somebody typed it, or the message to send: `//x` sends `/x`, and `/etc/hosts` is no command. Raises
 * CommandError for a command that does not exist. */
export function parse(line: string, t: Translate): { command: Command; rest: string } | string {
  const text = line.trim();
  if (text.startsWith("//")) return text.slice(1);
  const found = WORD.exec(text);
  if (found === null) return text;
  const [, word = "", rest = ""] = found;
  const name = word.toLowerCase();
  if (AGENT_COMMANDS.includes(name)) return text;
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) throw new CommandError(t("command.unknown", { name }));
  return { command, rest: rest.trim() };
}

export interface Completion {
  /** The line with the completion in it. */
  line: string;
  label: string;
  help: TextKey | null;
}

/** How a line that begins with a slash may go on. */
export async function completionsOf(line: string): Promise<Completion[]> {
  const [, name = "", space = "", rest = ""] = /^\/([A-Za-z-]*)(\s?)([\s\S]*)$/.exec(line) ?? [];
  if (!space) {
    const found = COMMANDS.filter((one) => one.name.startsWith(name.toLowerCase()));
    return found.map(({ name: full, usage, help }) => ({ line: usage.includes(" ") ? `/${full} ` : `/${full}`, label: usage, help }));
  }
  const words = (await COMMANDS.find((one) => one.name === name)?.complete?.().catch(() => [])) ?? [];
  const typed = rest.toLowerCase();
  const fitting = words.filter((word) => word.toLowerCase().includes(typed) && word !== rest);
  return fitting.map((word) => ({ line: `/${name} ${word}`, label: word, help: null }));
}

const COMMANDS: Command[] = [
  { name: "help", usage: "/help", help: "command.help", act: ({ t }) => helpText(t) },
  { name: "new", usage: "/new", help: "command.new", act: () => go("chat") },
  { name: "blocks", usage: "/blocks", help: "command.blocks", act: () => go("blocks") },
  { name: "switch", usage: "/switch BLOCK [TEXT]", help: "command.switch", act: switchBlock, complete: blockNames },
  { name: "conversations", usage: "/conversations [WORDS]", help: "command.conversations", act: listConversations },
  { name: "open", usage: "/open ID", help: "command.open", act: (session, rest) => go("chat", needed(session, rest)) },
  { name: "title", usage: "/title TEXT", help: "command.title", act: title },
  { name: "status", usage: "/status", help: "command.status", act: status },
  { name: "model", usage: "/model [NAME|default]", help: "command.model", act: model, complete: modelNames },
  { name: "cancel", usage: "/cancel", help: "command.cancel", act: cancel },
  { name: "steer", usage: "/steer TEXT", help: "command.steer", act: steer },
  { name: "approvals", usage: "/approvals", help: "command.approvals", act: () => go("approvals") },
  { name: "approve", usage: "/approve ID [SCOPE]", help: "command.approve", act: approve },
  { name: "deny", usage: "/deny ID", help: "command.deny", act: (session, rest) => decide(session, rest, { allow: false }) },
  { name: "answer", usage: "/answer ID TEXT", help: "command.answer", act: answer },
  { name: "trace", usage: "/trace [TURN]", help: "command.trace", act: trace },
  { name: "context", usage: "/context", help: "command.context", act: context },
  { name: "save", usage: "/save", help: "command.save", act: save },
];

function helpText(t: Translate): string {
  return [...COMMANDS.map(({ usage, help }) => `${usage} – ${t(help)}`), t("command.agent")].join("\n");
}

function go(page: "activity" | "approvals" | "blocks" | "chat", name = "", part = ""): string {
  goTo(page, name, { part });
  return "";
}

/** What follows the command. Raises CommandError if nothing does. */
function needed({ t }: CommandSession, rest: string): string {
  if (!rest) throw new CommandError(t("command.incomplete"));
  return rest;
}

/** The id of the conversation. Raises CommandError if there is none yet. */
function place({ conversation, t }: CommandSession): string {
  if (!conversation.id) throw new CommandError(t("command.noConversation"));
  return conversation.id;
}

function running({ conversation, t }: CommandSession): string {
  const turn = conversation.turns.find((one) => one.id !== "" && one.phase !== "ended");
  if (turn === undefined) throw new CommandError(t("command.noTurn"));
  return turn.id;
}

function switchBlock(session: CommandSession, rest: string): string {
  const [name = "", ...words] = needed(session, rest).split(/\s+/);
  session.chooseBlock(name);
  goTo("chat");
  if (words.length > 0) session.store.send("", { content: words.join(" "), files: [], block: name });
  return session.t("command.switched", { block: name });
}

async function blockNames(): Promise<string[]> {
  return (await dataOf(api.GET("/api/blocks"))).blocks.map((block) => block.name);
}

async function listConversations({ t }: CommandSession, rest: string): Promise<string> {
  const query = { limit: 15, ...(rest ? { search: rest } : {}) };
  const { conversations } = await dataOf(api.GET("/conversations", { params: { query } }));
  return conversations.map((one) => `${one.id}  ${one.title ?? ""}`).join("\n") || t("chat.noMatch");
}

async function title(session: CommandSession, rest: string): Promise<string> {
  const id = place(session);
  const changes = { params: { path: { id } }, body: { title: needed(session, rest) } };
  session.store.rename(id, (await dataOf(api.PATCH("/conversations/{id}", changes))).title ?? "");
  return "";
}

async function status(session: CommandSession): Promise<string> {
  const { conversation, t } = session;
  const { turns } = conversation;
  const sum = (count: (turn: (typeof turns)[number]) => number) => turns.reduce((total, turn) => total + count(turn), 0);
  const tokens = t("chat.tokens", { in: sum((one) => one.usage?.prompt_tokens ?? 0), out: sum((one) => one.usage?.completion_tokens ?? 0) });
  const cost = t("chat.cost", { dollars: sum((one) => one.cost ?? 0).toFixed(4) });
  return [conversation.id || t("chat.new"), await model(session, ""), tokens, cost].join("\n");
}

async function model(session: CommandSession, rest: string): Promise<string> {
  if (!session.conversation.id && !rest) return "";
  const params = { path: { id: place(session) } };
  const chosen = { model: rest === "default" ? null : rest };
  const found = await dataOf(
    rest ? api.PUT("/api/conversations/{id}/model", { params, body: chosen }) : api.GET("/api/conversations/{id}/model", { params }),
  );
  return `${session.t("chat.model")} ${found.problem || found.model}`;
}

async function modelNames(): Promise<string[]> {
  const { adapters } = await dataOf(api.GET("/api/models"));
  return ["default", ...adapters.flatMap((one) => (one.models ?? []).map((found) => found.name))];
}

async function cancel(session: CommandSession): Promise<string> {
  await dataOf(api.POST("/api/turns/{id}/cancel", { params: { path: { id: running(session) } }, body: {} }));
  return "";
}

async function steer(session: CommandSession, rest: string): Promise<string> {
  const body = { content: needed(session, rest) };
  await dataOf(api.POST("/api/turns/{id}/steer", { params: { path: { id: running(session) } }, body }));
  return "";
}

function approve(session: CommandSession, rest: string): Promise<string> {
  const [id = "", scope = "once"] = rest.split(/\s+/);
  if (scope !== "once" && scope !== "conversation" && scope !== "always") throw new CommandError(session.t("command.incomplete"));
  return decide(session, id, { allow: true, scope });
}

function answer(session: CommandSession, rest: string): Promise<string> {
  const [id = "", ...words] = rest.split(/\s+/);
  return decide(session, id, { answer: needed(session, words.join(" ")) });
}

/** Decide about the one open call whose id begins so. Raises CommandError if it is none, or more than one. */
async function decide(session: CommandSession, id: string, decision: Omit<Schemas["DecisionRequest"], "hash">): Promise<string> {
  const beginning = needed(session, id);
  const { approvals } = await dataOf(api.GET("/api/approvals"));
  const [found, other] = approvals.filter((one) => !one.settled && one.id.startsWith(beginning));
  if (found === undefined || other !== undefined) throw new CommandError(session.t("command.noApproval"));
  const path = { id: found.turn, call: found.call };
  await dataOf(api.POST("/api/turns/{id}/calls/{call}/decision", { params: { path }, body: { hash: found.hash, ...decision } }));
  return "";
}

function trace(session: CommandSession, rest: string): string {
  const turn = rest || session.conversation.turns.findLast((one) => one.id !== "")?.id;
  if (turn === undefined) throw new CommandError(session.t("command.noConversation"));
  return go("activity", "trace", turn);
}

async function context(session: CommandSession): Promise<string> {
  const view = await dataOf(api.GET("/api/conversations/{id}/context", { params: { path: { id: place(session) } } }));
  return [view.model, ...view.parts.map((part) => `${part.tokens}  ${part.kind} ${part.name}`)].join("\n");
}

async function save(session: CommandSession): Promise<string> {
  await saveConversation(place(session), "json");
  return "";
}
