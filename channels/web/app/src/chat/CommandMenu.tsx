/** The commands that a line may become. The arrow keys choose, Tab or a click takes one; the focus stays in the field. */
import { useEffect, useState } from "react";

import { useTexts } from "../i18n";
import { completionsOf, type Completion } from "./commands";

export const MENU_ID = "command-menu";

interface Props {
  line: string;
  chosen: number;
  onFound: (lines: string[]) => void;
  onTake: (line: string) => void;
}

export default function CommandMenu({ line, chosen, onFound, onTake }: Props) {
  const t = useTexts();
  const [found, setFound] = useState<Completion[]>([]);
  useEffect(() => {
    let isWanted = true;
    void completionsOf(line).then((completions) => {
      if (!isWanted) return;
      setFound(completions);
      onFound(completions.map((one) => one.line));
    });
    return () => {
      isWanted = false;
    };
  }, [line, onFound]);
  if (found.length === 0) return null;
  const active = chosen % found.length;
  return (
    <div id={MENU_ID} className="command-menu menu" role="listbox" aria-label={t("command.label")}>
      {found.map((one, index) => (
        // The field handles the keys.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <div key={one.label} id={`${MENU_ID}-${index}`} role="option" aria-selected={index === active} tabIndex={-1} onClick={() => onTake(one.line)}>
          <code>{one.label}</code> {one.help && <span className="dim">{t(one.help)}</span>}
        </div>
      ))}
    </div>
  );
}
