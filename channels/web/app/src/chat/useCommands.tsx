/** The slash commands in the field for messages: the menu of completions, and what a command told. */
import { useCallback, useState, type KeyboardEvent, type ReactNode } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Notice } from "../ui/Notice";
import { useChatStore } from "./ChatContext";
import type { CommandSession } from "./commands";

interface CommandField {
  /** Whether the line may be a command. */
  isCommand: boolean;
  isOpen: boolean;
  chosen: number;
  active: string | undefined;
  outcome: ReactNode;
  /** Take away what the last command told. */
  forget: () => void;
  found: (lines: string[]) => void;
  take: (line: string) => void;
  /** Handles a key; whether it was one of the menu. */
  key: (event: KeyboardEvent) => boolean;
  /** Carry out the line, or send it if it is a message. */
  run: (send: (content: string) => void) => void;
}

type Place = Pick<CommandSession, "conversation" | "chooseBlock">;

export function useCommands(place: Place, draft: string, setDraft: (text: string) => void): CommandField {
  const t = useTexts();
  const store = useChatStore();
  const [chosen, setChosen] = useState(0);
  const [lines, setLines] = useState<string[]>([]);
  const [closed, setClosed] = useState("");
  const [told, setTold] = useState<{ text: string; isError: boolean } | null>(null);
  const isCommand = draft.startsWith("/");
  const isOpen = isCommand && !draft.includes("\n") && closed !== draft;
  const found = useCallback((completions: string[]) => {
    setLines(completions);
    setChosen(0);
  }, []);
  const key = ({ key: name, shiftKey }: KeyboardEvent) => {
    const line = lines[chosen % Math.max(lines.length, 1)];
    if (!isOpen || line === undefined || shiftKey) return false;
    if (name === "ArrowDown") setChosen((chosen + 1) % lines.length);
    else if (name === "ArrowUp") setChosen((chosen + lines.length - 1) % lines.length);
    else if (name === "Escape") setClosed(draft);
    else if (name === "Tab" || (name === "Enter" && line.startsWith(draft) && line.trim() !== draft.trim())) setDraft(line);
    else return false;
    return true;
  };
  const forget = () => setTold(null);
  const run = (send: (content: string) => void) => {
    void import("./commands").then(async ({ parse, CommandError }) => {
      try {
        const parsed = parse(draft, t);
        if (typeof parsed === "string") {
          send(parsed);
          return;
        }
        const text = await parsed.command.act({ ...place, store, t }, parsed.rest);
        setDraft("");
        if (text) setTold({ text, isError: false });
      } catch (error) {
        setTold({ text: error instanceof CommandError ? error.message : sentence(t, error), isError: true });
      }
    });
  };
  return {
    isCommand, isOpen, chosen, found, key, forget, run,
    active: isOpen && lines.length > 0 ? `command-menu-${chosen % lines.length}` : undefined,
    take: setDraft,
    outcome: told && <Notice kind={told.isError ? "error" : "info"}><span className="told">{told.text}</span></Notice>,
  };
}
