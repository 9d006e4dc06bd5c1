/** A sentence about something that happened. A screen reader says it at once. */
import type { ReactNode } from "react";

export function Notice({ kind, children }: { kind: "info" | "error"; children: ReactNode }) {
  return (
    <p className={`notice notice-${kind}`} role={kind === "error" ? "alert" : "status"}>
      {children}
    </p>
  );
}
