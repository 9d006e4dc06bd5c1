/** Memory: the tree of its files, the one that the address names, search, what was remembered, and moving it. */
import { lazy, Suspense, useState } from "react";

import { useTexts } from "../i18n";
import { addressOf } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/memory.css";
import "../styles/pages.css";
import { GRAPH, REMEMBERED, TRANSFER } from "./addresses";
import { Chunks } from "./Chunks";
import { DocumentDrop } from "./DocumentDrop";
import { FileView } from "./FileView";
import { Folder } from "./Folder";
import { MemorySearch } from "./MemorySearch";

const ChunkGraph = lazy(() => import("./ChunkGraph"));
const Transfer = lazy(() => import("./Transfer"));

const VIEWS = { [REMEMBERED]: "memory.chunks", [GRAPH]: "memory.graph", [TRANSFER]: "memory.transfer" } as const;

/** `part` is the id of the text that is chosen in the graph. */
export default function MemoryPage({ name, part }: { name: string; part: string }) {
  const t = useTexts();
  const mayRead = useMay("owner", { everywhere: true });
  const [changes, setChanges] = useState(0);
  if (!mayRead) return <div className="page"><h1>{t("nav.memory")}</h1><Permitted scope="owner" everywhere>{null}</Permitted></div>;
  const changed = () => setChanges((before) => before + 1);
  return (
    <DocumentDrop onAdded={changed}>
      <div className="memory" data-open={name !== ""}>
        <aside className="memory-tree" aria-label={t("memory.files")}>
          <ul>
            {Object.entries(VIEWS).map(([view, text]) => (
              <li key={view}><a href={addressOf("memory", view)} aria-current={name === view ? "true" : undefined}>{t(text)}</a></li>
            ))}
          </ul>
          <h2>{t("memory.files")}</h2>
          <Folder key={changes} path="" current={name} />
        </aside>
        <section className="memory-content" aria-label={name || t("memory.search")}>
          {name !== "" && <p><a href={addressOf("memory")}>← {t("memory.search")}</a></p>}
          {name === "" && <h1>{t("nav.memory")}</h1>}
          <Suspense fallback={<p className="waiting">{t("app.loading")}</p>}>
            <View name={name} part={part} onChanged={changed} />
          </Suspense>
        </section>
      </div>
    </DocumentDrop>
  );
}

function View({ name, part, onChanged }: { name: string; part: string; onChanged: () => void }) {
  if (name === "") return <MemorySearch />;
  if (name === REMEMBERED) return <Chunks />;
  if (name === GRAPH) return <ChunkGraph chosen={part} />;
  if (name === TRANSFER) return <Transfer onImported={onChanged} />;
  return <FileView key={name} path={name} onChanged={onChanged} />;
}
