/** The list of conversations as the gateway has it. It is read again when the search, the archive or the conversation
 * changes, and when the window is looked at again. */
import { useCallback, useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";

type Item = Schemas["ConversationItem"];

interface Listed {
  /** The pinned conversations, where they stand apart. */
  pinned: Item[];
  items: Item[];
  /** How many there are besides the pinned ones. */
  total: number;
  failure: unknown;
}

const PAGE = 30;
const LARGEST_PAGE = 100;
const TYPING_MS = 250;

export function useConversations(search: string, isArchive: boolean, current: string) {
  const [pages, setPages] = useState(1);
  const [listed, setListed] = useState<Listed>({ pinned: [], items: [], total: 0, failure: null });
  const refresh = useCallback(() => {
    read(search, isArchive, Math.min(PAGE * pages, LARGEST_PAGE)).then(
      (found) => setListed({ ...found, failure: null }),
      (failure: unknown) => setListed((before) => ({ ...before, failure })),
    );
  }, [search, isArchive, pages]);
  useEffect(() => {
    const timer = setTimeout(refresh, search ? TYPING_MS : 0);
    return () => clearTimeout(timer);
  }, [refresh, search, current]);
  useEffect(() => {
    window.addEventListener("focus", refresh);
    return () => window.removeEventListener("focus", refresh);
  }, [refresh]);
  return { ...listed, more: () => setPages(pages + 1), refresh };
}

async function read(search: string, isArchive: boolean, limit: number): Promise<Omit<Listed, "failure">> {
  const archived = isArchive ? { archived: "only" as const } : {};
  if (search || isArchive) {
    const found = await page({ limit, ...archived, ...(search ? { search } : {}) });
    return { pinned: [], items: found.conversations, total: found.total };
  }
  const [pinned, others] = await Promise.all([page({ limit: LARGEST_PAGE, pinned: true }), page({ limit, pinned: false })]);
  const apart = new Set(pinned.conversations.map((item) => item.id)); // a pin may be set between the two replies
  return { pinned: pinned.conversations, items: others.conversations.filter((item) => !apart.has(item.id)), total: others.total };
}

function page(query: { limit: number; search?: string; pinned?: boolean; archived?: "only" }) {
  return dataOf(api.GET("/conversations", { params: { query } }));
}
