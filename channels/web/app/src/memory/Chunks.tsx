/** What was remembered: each text, the turn that it was learned from, its links, and the way to forget it. */
import { useCallback, useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { GRAPH } from "./addresses";
import { Origin } from "./Origin";

type Chunk = Schemas["Chunk"];

const PAGE = 50;

export function Chunks() {
  const t = useTexts();
  const [limit, setLimit] = useState(PAGE);
  const ask = useCallback(() => dataOf(api.GET("/api/memory/chunks", { params: { query: { limit } } })), [limit]);
  const { data, failure, reload } = useLoaded(ask);
  return (
    <>
      <h1>{t("memory.chunks")}</h1>
      <p><a href={addressOf("memory", GRAPH)}>{t("memory.graph")}</a></p>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data?.total === 0 && <p className="dim">{t("memory.chunks.none")}</p>}
      <ul className="cards">
        {data?.chunks.map((chunk) => (
          <li key={chunk.id} className="card">
            <RememberedText chunk={chunk} onForgotten={reload} />
          </li>
        ))}
      </ul>
      {data !== null && data.chunks.length < data.total && limit < 1000 && <Button onClick={() => setLimit(limit + PAGE)}>{t("chat.more")}</Button>}
    </>
  );
}

interface TextProps {
  chunk: Chunk;
  /** Whether its links are shown before somebody asks. */
  areLinksShown?: boolean;
  onForgotten: () => void;
}

export function RememberedText({ chunk, areLinksShown = false, onForgotten }: TextProps) {
  const t = useTexts();
  const { metadata, id } = chunk;
  const [links, setLinks] = useState<Schemas["LinkedChunk"][] | null>(null);
  const [isAsked, setAsked] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const path = { params: { path: { id } } };
  const read = useCallback(() => {
    dataOf(api.GET("/api/memory/chunks/{id}/links", { params: { path: { id } } })).then((found) => setLinks(found.links), setFailure);
  }, [id]);
  useEffect(() => {
    if (areLinksShown) read();
  }, [areLinksShown, read]);
  const show = () => (links === null ? read() : setLinks(null));
  const forget = () => {
    dataOf(api.DELETE("/api/memory/chunks/{id}", path)).then(onForgotten, setFailure);
  };
  return (
    <>
      <p className="hit">{chunk.content}</p>
      <p className="dim">
        <span className="badge">{chunk.type}</span> {t("memory.confidence", { percent: Math.round((metadata.confidence ?? 0) * 100) })} {(chunk.tags ?? []).join(", ")}
      </p>
      <Origin author={metadata.actor ?? metadata.source ?? ""} timestamp={metadata.created_at} conversation={metadata.conversation_id ?? null} turn={metadata.turn_id ?? null} />
      <div className="choices">
        <Button aria-expanded={links !== null} onClick={show}>{t("memory.links")}</Button>
        <Button kind="danger" onClick={() => setAsked(true)}>{t("memory.forget")}</Button>
      </div>
      {links?.length === 0 && <p className="dim">{t("memory.links.none")}</p>}
      {links !== null && links.length > 0 && (
        <ul>
          {links.map((link) => (
            <li key={`${link.chunk.id}/${link.type}`}>
              {link.incoming ? "←" : "→"} {link.type} ({link.strength.toFixed(2)}): {link.chunk.content}
            </li>
          ))}
        </ul>
      )}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isAsked && (
        <Dialog title={t("memory.forget")} submit={t("memory.forget")} isDangerous onClose={() => setAsked(false)} onSubmit={forget}>
          <p>{t("memory.forget.means")}</p>
        </Dialog>
      )}
    </>
  );
}
