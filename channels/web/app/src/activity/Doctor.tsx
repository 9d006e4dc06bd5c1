/** What “trunkline doctor” says of this installation, and the ports that are open. */
import { useCallback } from "react";

import { api, dataOf } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

const ORDER = ["error", "warning"];

/** What needs attention comes first; the rest keeps its order. */
function urgency(status: string): number {
  const place = ORDER.indexOf(status);
  return place < 0 ? ORDER.length : place;
}

export function Doctor() {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/doctor")), []);
  const { data, failure, reload } = useLoaded(ask);
  return (
    <section aria-label={t("activity.doctor")}>
      <Button onClick={reload}>{t("activity.again")}</Button>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data === null && failure === null && <p className="dim">{t("activity.doctor.waits")}</p>}
      <ul className="cards">
        {data?.checks.toSorted((one, other) => urgency(one.status) - urgency(other.status)).map((check) => (
          <li key={`${check.id} ${check.owner ?? ""}`} className="card">
            <span className={check.status === "error" ? "badge badge-ERROR" : "badge"}>{t(`activity.doctor.${check.status}`)}</span>{" "}
            <code>{check.id}</code> {check.summary}
            {check.hint && <p className="dim">{check.hint}</p>}
          </li>
        ))}
      </ul>
      {data && <h2>{t("activity.doctor.ports")}</h2>}
      <ul className="cards">
        {data?.listeners?.map((one) => (
          <li key={one.address} className="card"><code>{one.address}</code> {one.purpose} <span className="dim">{one.credential}</span></li>
        ))}
      </ul>
    </section>
  );
}
