/** The address: `#/PAGE/NAME/PART`. A hash needs no route of the gateway, and is in no request. */
import { useSyncExternalStore } from "react";

export const PAGES = ["chat", "approvals", "blocks", "schedules", "workflows", "memory", "activity"] as const;
/** Pages that the menu leads to. */
const MENU_PAGES = ["account", "settings", "mcp", "setup"] as const;
export type Page = (typeof PAGES)[number] | (typeof MENU_PAGES)[number];

export interface Location {
  page: Page;
  name: string;
  /** What to show of it, such as a turn of a conversation. */
  part: string;
}

export function useLocation(): Location {
  return parse(useSyncExternalStore(subscribe, () => window.location.hash));
}

export function addressOf(page: Page, name = "", part = ""): string {
  return `#/${[page, name, part].filter(Boolean).map(encodeURIComponent).join("/")}`;
}

/** Go to a page. With `replace` the page before it is left out of the history. */
export function goTo(page: Page, name = "", { replace = false, part = "" } = {}): void {
  const address = addressOf(page, name, part);
  if (replace) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

function parse(hash: string): Location {
  const [, page = "", name = "", part = ""] = hash.split("/");
  const known = [...PAGES, ...MENU_PAGES].find((one) => one === page) ?? "chat";
  try {
    return { page: known, name: decodeURIComponent(name), part: decodeURIComponent(part) };
  } catch {
    return { page: known, name: "", part: "" };
  }
}

function subscribe(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  window.addEventListener("popstate", changed);
  return () => {
    window.removeEventListener("hashchange", changed);
    window.removeEventListener("popstate", changed);
  };
}
