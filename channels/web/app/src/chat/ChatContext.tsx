/** The store of the chat, for the components below. */
import { createContext, useContext, useEffect, useState, useSyncExternalStore, type ReactNode } from "react";

import { goTo } from "../router";
import { ChatStore, type Conversation } from "./store";

const StoreContext = createContext<ChatStore | null>(null);

export function ChatProvider({ children }: { children: ReactNode }) {
  const [store] = useState(() => new ChatStore((conversation) => goTo("chat", conversation, { replace: true })));
  useEffect(() => {
    store.start();
    return () => store.close();
  }, [store]);
  return <StoreContext value={store}>{children}</StoreContext>;
}

export function useChatStore(): ChatStore {
  const store = useContext(StoreContext);
  if (store === null) throw new Error("useChatStore is used outside of ChatProvider");
  return store;
}

/** A conversation for those who show no answers: they are not drawn again while an answer grows. */
export function useConversationOutline(id: string): Conversation {
  const store = useChatStore();
  return useSyncExternalStore(store.subscribe, () => store.outline(id));
}

/** A conversation as it is now. It is read from the gateway when it is opened, and when the window is looked at again. */
export function useConversation(id: string): Conversation {
  const store = useChatStore();
  useEffect(() => {
    store.watch(id);
    const reload = () => {
      if (document.visibilityState === "visible") void store.load(id);
    };
    document.addEventListener("visibilitychange", reload);
    return () => document.removeEventListener("visibilitychange", reload);
  }, [store, id]);
  return useSyncExternalStore(store.subscribe, () => store.get(id));
}
