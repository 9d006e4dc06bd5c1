/** Search in all of memory, with the reasons for the order of what is found. */
import { useState, type SyntheticEvent } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

type Hit = Schemas["MemoryHit"];

export function MemorySearch() {
  const t = useTexts();
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Schemas["MemorySearchResult"] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const search = (event: SyntheticEvent) => {
    event.preventDefault();
    setFailure(null);
    dataOf(api.GET("/api/memory/search", { params: { query: { query, limit: 30 } } })).then(setFound, setFailure);
  };
  return (
    <>
      <form className="card-row" role="search" onSubmit={search}>
        <input type="search" className="grow" aria-label={t("memory.search")} placeholder={t("memory.search")} value={query} required onChange={(event) => setQuery(event.target.value)} />
        <Button kind="primary" type="submit">{t("memory.search.do")}</Button>
      </form>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {found !== null && <p className="dim" role="status">{t("memory.search.found", { count: found.hits.length })} {found.searched}</p>}
      <ul className="cards">
        {found?.hits.map((hit, index) => (
          <li key={index} className="card">
            <Found hit={hit} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Found({ hit }: { hit: Hit }) {
  const t = useTexts();
  const why = hit.why ?? [];
  return (
    <>
      <p>
        <a href={hit.conversation ? addressOf("chat", hit.conversation) : addressOf("memory", hit.path)}>
          {hit.path}:{hit.line}
        </a>{" "}
        <span className="badge">{hit.kind}</span>
      </p>
      <p className="hit">{hit.content}</p>
      {why.length > 0 && (
        <details>
          <summary>{t("memory.search.why", { score: hit.score.toFixed(2) })}</summary>
          <dl className="why">
            {why.map((one, index) => (
              <div key={index}>
                <dt>{one.signal} {one.weight.toFixed(2)}</dt>
                <dd>{one.detail}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </>
  );
}
