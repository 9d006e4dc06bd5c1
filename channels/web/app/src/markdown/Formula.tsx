/** A formula as MathML, which the browser draws and a screen reader says. The library is loaded with the first one. */
import { useEffect, useRef } from "react";

interface Props {
  tex: string;
  isDisplayed: boolean;
}

/** The greatest length, and the greatest number of macros that are expanded: a formula is not trusted. */
const LONGEST = 5000;
const MOST_MACROS = 100;

export function Formula({ tex, isDisplayed }: Props) {
  const element = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    let isWanted = true;
    if (tex.length > LONGEST) return;
    void import("temml").then(({ default: temml }) => {
      if (!isWanted || element.current === null) return;
      const options = { displayMode: isDisplayed, throwOnError: false, trust: false, maxExpand: MOST_MACROS, maxSize: [20, 20] as [number, number] };
      temml.render(tex, element.current, options);
    }, () => undefined); // it stays as it was written
    return () => {
      isWanted = false;
    };
  }, [tex, isDisplayed]);
  return (
    <span ref={element} key={tex} className={isDisplayed ? "formula formula-block" : "formula"}>
      {tex}
    </span>
  );
}
