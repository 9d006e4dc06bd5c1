/** The stop of everything: the question, what was stopped, and what has not answered. Nothing here releases it. */
import { useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLanguage } from "../i18n";
import { sentence } from "../i18n/errors";
import { goTo } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";

interface Props {
  /** Whether the address asks for the question. */
  isAsked: boolean;
  /** Whether everything is stopped, as the gateway tells all windows. */
  isStopped: boolean;
  turns: number;
}

export function StopEverything({ isAsked, isStopped, turns }: Props) {
  const { t, locale } = useLanguage();
  const mayStop = useMay("operate", { everywhere: true });
  const state = usePanic(isStopped);
  const [report, setReport] = useState<{ workers: Schemas["PanicReport"]; turns: number } | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const isLocked = useLock(report);
  const ask = (is: boolean) => goTo("activity", is ? "stop" : "", { replace: true });
  const stop = () => {
    setFailure(null);
    const running = turns;
    dataOf(api.POST("/api/panic")).then((workers) => setReport({ workers, turns: running }), setFailure);
  };
  return (
    <section aria-label={t("activity.stop")}>
      <Permitted scope="operate" everywhere>
        <Button kind="danger" className="stop" disabled={isLocked} onClick={() => ask(true)}>
          {t("activity.stop")}
        </Button>
      </Permitted>
      {isAsked && mayStop && (
        <Dialog title={t("activity.stop")} submit={t("nav.stop")} isDangerous onClose={() => ask(false)} onSubmit={stop}>
          <p>{t("activity.stop.means")}</p>
        </Dialog>
      )}
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {isStopped && state !== null && (
        <Notice kind="error">{t("activity.stop.since", { time: timeOf(state.at, locale), by: state.by || "?" })}</Notice>
      )}
      {isStopped && report !== null && <Report {...report} />}
    </section>
  );
}

/** What the workers reported. A worker that did not answer is never counted as stopped. */
function Report({ workers, turns }: { workers: Schemas["PanicReport"]; turns: number }) {
  const { t } = useLanguage();
  const { stopped = [], silent = [] } = workers;
  return (
    <ul role="status">
      <li>{t("activity.stop.turns", { count: turns })}</li>
      <li>{stopped.length > 0 ? t("activity.stop.stopped", { workers: stopped.join(", ") }) : t("activity.stop.nobody")}</li>
      {silent.length > 0 && <li>{t("activity.stop.silent", { workers: silent.join(", ") })}</li>}
    </ul>
  );
}

const LOCKED_MS = 3000;

/** Whether a stop was reported a moment ago: a second click of an excited hand is none. */
function useLock(report: unknown): boolean {
  const [unlocked, setUnlocked] = useState<unknown>(null);
  useEffect(() => {
    const timer = setTimeout(() => setUnlocked(report), LOCKED_MS);
    return () => clearTimeout(timer);
  }, [report]);
  return report !== null && report !== unlocked;
}

/** Who stopped everything, and when. */
function usePanic(isStopped: boolean): Schemas["PanicState"] | null {
  const [state, setState] = useState<Schemas["PanicState"] | null>(null);
  useEffect(() => {
    if (isStopped) dataOf(api.GET("/api/panic")).then(setState, () => setState({ engaged: true }));
  }, [isStopped]);
  return state;
}

function timeOf(at: string | undefined, locale: string): string {
  return at ? new Date(at).toLocaleString(locale, { dateStyle: "short", timeStyle: "medium" }) : "?";
}
