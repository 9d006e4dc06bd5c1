/** The emoji and the colour of a block, before its name. They are decoration: the name says which block it is. */
import type { CSSProperties } from "react";

import type { Schemas } from "../api/client";
import "../styles/block-mark.css";

export function BlockMark({ config }: { config: Schemas["BlockConfig"] }) {
  const { monitor_colour: colour, monitor_emoji: emoji } = config;
  return (
    <>
      {colour && (
        <span className="block-mark" data-colour={colour} aria-hidden="true" style={isHex(colour) ? ({ "--chosen": colour } as CSSProperties) : undefined} />
      )}
      {emoji && <span aria-hidden="true">{emoji} </span>}
    </>
  );
}

/** The gateway permits only names and `#rrggbb`; nothing else goes into a style. */
function isHex(colour: string): boolean {
  return /^#[0-9a-f]{6}$/i.test(colour);
}
