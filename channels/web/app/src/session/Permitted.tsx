/** What the token of this browser permits, so that the page offers nothing that the gateway would refuse. The gateway
 * decides; this only says it before. */
import { createContext, useContext, type ReactNode } from "react";

import type { Schemas } from "../api/client";
import { useTexts } from "../i18n";

const SCOPES = ["read", "chat", "approve", "operate", "owner"] as const;
export type Scope = (typeof SCOPES)[number];

const MeContext = createContext<Schemas["Me"] | null>(null);

export function MeProvider({ me, children }: { me: Schemas["Me"]; children: ReactNode }) {
  return <MeContext value={me}>{children}</MeContext>;
}

export function useMe(): Schemas["Me"] {
  const me = useContext(MeContext);
  if (me === null) throw new Error("useMe is used outside of MeProvider");
  return me;
}

/** Whether the token has this scope. With `everywhere` it must also be the owner's, for all blocks. */
export function useMay(scope: Scope, { everywhere = false } = {}): boolean {
  const me = useMe();
  const has = SCOPES.indexOf(me.scope as Scope) >= SCOPES.indexOf(scope);
  return has && (!everywhere || (me.type === "owner" && !me.blocks));
}

interface Props {
  scope: Scope;
  everywhere?: boolean;
  children: ReactNode;
}

/** Controls that need a scope. Without it they are disabled, and a sentence says why. */
export function Permitted({ scope, everywhere = false, children }: Props) {
  const t = useTexts();
  const me = useMe();
  const may = useMay(scope, { everywhere });
  if (may) return children;
  return (
    <fieldset className="refused" disabled>
      {children}
      <p className="dim">{t(everywhere ? "session.refused.owner" : "session.refused", { needed: scope, scope: me.scope })}</p>
    </fieldset>
  );
}
