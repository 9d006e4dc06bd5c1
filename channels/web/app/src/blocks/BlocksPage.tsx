/** The blocks: their state, and what the owner does with them. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { usePolled } from "../api/usePolled";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { BlockCard } from "./BlockCard";
import { NewBlock } from "./NewBlock";
import "../styles/pages.css";

const EVERY_MS = 3000;

export default function BlocksPage() {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/blocks", { params: { query: { archived: true } } })), []);
  const { data, failure, refresh } = usePolled(ask, EVERY_MS);
  const archives = data?.archived ?? [];
  return (
    <div className="page">
      <h1>{t("nav.blocks")}</h1>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      <Permitted scope="operate">
        <NewBlock onCreated={refresh} />
        <ul className="cards">
          {data?.blocks.map((block) => (
            <BlockCard key={block.name} block={block} onChanged={refresh} />
          ))}
        </ul>
        {archives.length > 0 && (
          <section>
            <h2>{t("blocks.archives")}</h2>
            <ul className="cards">
              {archives.map((archive) => (
                <Archive key={archive.archive} archive={archive} onChanged={refresh} />
              ))}
            </ul>
          </section>
        )}
      </Permitted>
    </div>
  );
}

function Archive({ archive, onChanged }: { archive: Schemas["ArchivedBlockItem"]; onChanged: () => void }) {
  const t = useTexts();
  const [failure, setFailure] = useState<unknown>(null);
  const restore = () => {
    const path = { params: { path: { name: archive.name } } };
    dataOf(api.POST("/api/blocks/{name}/restore", path)).then(onChanged, setFailure);
  };
  return (
    <li className="card card-row">
      <span>{archive.name}</span>
      <Button onClick={restore}>{t("blocks.restore")}</Button>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
    </li>
  );
}
