/** Copies a text, and says that it did. */
import { useEffect, useState } from "react";

import { useTexts } from "../i18n";
import { Button } from "./Button";

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const t = useTexts();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (!("clipboard" in navigator)) return null; // a browser has none on a page without TLS that is not this machine's
  return (
    <Button kind="icon" onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}>
      <span aria-live="polite">{isCopied ? t("ui.copied") : label}</span>
    </Button>
  );
}
