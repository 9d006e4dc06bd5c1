/** Memory: the tree of its files, the one that the address names, search, and what was remembered. */
import { useState } from "react";

import { useTexts } from "../i18n";
import { addressOf } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/memory.css";
import "../styles/pages.css";
import { REMEMBERED } from "./addresses";
import { Chunks } from "./Chunks";
import { FileView } from "./FileView";
import { Folder } from "./Folder";
import { MemorySearch } from "./MemorySearch";

export default function MemoryPage({ name }: { name: string }) {
  const t = useTexts();
  const mayRead = useMay("owner", { everywhere: true });
  const [changes, setChanges] = useState(0);
  if (!mayRead) return <div className="page"><h1>{t("nav.memory")}</h1><Permitted scope="owner" everywhere>{null}</Permitted></div>;
  return (
    <div className="memory" data-open={name !== ""}>
      <aside className="memory-tree" aria-label={t("memory.files")}>
        <h2>{t("memory.files")}</h2>
        <p><a href={addressOf("memory", REMEMBERED)} aria-current={name === REMEMBERED ? "true" : undefined}>{t("memory.chunks")}</a></p>
        <Folder key={changes} path="" current={name} />
      </aside>
      <section className="memory-content" aria-label={name || t("memory.search")}>
        {name !== "" && <p><a href={addressOf("memory")}>← {t("memory.search")}</a></p>}
        {name === "" && <h1>{t("nav.memory")}</h1>}
        {name === "" && <MemorySearch />}
        {name === REMEMBERED && <Chunks />}
        {name !== "" && name !== REMEMBERED && <FileView key={name} path={name} onChanged={() => setChanges(changes + 1)} />}
      </section>
    </div>
  );
}
