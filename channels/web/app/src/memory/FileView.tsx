/** A file of memory: its text with the editor, its history, and who wrote each line. */
import { useState } from "react";

import { useTexts } from "../i18n";
import { Button } from "../ui/Button";
import { visible } from "../ui/visible";
import { FileAuthors } from "./FileAuthors";
import { FileEditor } from "./FileEditor";
import { FileHistory } from "./FileHistory";

const VIEWS = ["text", "history", "authors"] as const;
type View = (typeof VIEWS)[number];

export function FileView({ path, onChanged }: { path: string; onChanged: () => void }) {
  const t = useTexts();
  const [view, setView] = useState<View>("text");
  return (
    <>
      <h1 className="path">{visible(path)}</h1>
      <div className="choices" role="group" aria-label={t("memory.views")}>
        {VIEWS.map((one) => (
          <Button key={one} aria-pressed={view === one} onClick={() => setView(one)}>
            {t(`memory.view.${one}`)}
          </Button>
        ))}
      </div>
      {view === "text" && <FileEditor path={path} onChanged={onChanged} />}
      {view === "history" && <FileHistory path={path} onChanged={onChanged} />}
      {view === "authors" && <FileAuthors path={path} />}
    </>
  );
}
