/** The places of a conversation at which others, forked from the same one, go on differently. */
import { useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { NEW, type Conversation } from "./store";

export type Branch = Schemas["BranchItem"];

/** The branches of each turn that begins a place, by the turn's id. */
export type Branches = ReadonlyMap<string, Branch[]>;

const NO_BRANCHES: Branches = new Map();

export function useBranches({ id, state, turns }: Conversation): Branches {
  const [found, setFound] = useState({ id: NEW, branches: NO_BRANCHES });
  const isStored = id !== NEW && state === "ready";
  const ended = turns.filter((turn) => turn.phase === "ended").length;
  useEffect(() => {
    if (!isStored || ended === 0) return;
    let isWanted = true;
    dataOf(api.GET("/api/conversations/{id}/branches", { params: { path: { id } } })).then(
      ({ points }) => {
        if (isWanted) setFound({ id, branches: new Map(points.map((point) => [point.turn_id, point.branches])) });
      },
      () => undefined, // the conversation is shown without them; the next end of a turn asks again
    );
    return () => {
      isWanted = false;
    };
  }, [id, isStored, ended]);
  return found.id === id ? found.branches : NO_BRANCHES;
}
