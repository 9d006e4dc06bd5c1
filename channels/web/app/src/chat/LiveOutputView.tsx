/** The output of a running call as it arrives. It follows the end unless a person has scrolled away from it. */
import { useEffect, useRef } from "react";

import { useTexts } from "../i18n";
import { visible } from "../ui/visible";
import { plainOutput, type LiveOutput } from "./liveOutput";

/** How near to the end, in pixels, still counts as there. */
const NEAR = 24;

export function LiveOutputView({ output }: { output: LiveOutput }) {
  const t = useTexts();
  const box = useRef<HTMLPreElement>(null);
  const isFollowing = useRef(true);
  useEffect(() => {
    if (box.current !== null && isFollowing.current) box.current.scrollTop = box.current.scrollHeight;
  }, [output]);
  const scrolled = () => {
    if (box.current === null) return;
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    isFollowing.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre ref={box} className="tool-live" role="region" tabIndex={0} aria-label={t("tool.live")} onScroll={scrolled}>
      {visible(plainOutput(output.text))}
    </pre>
  );
}
