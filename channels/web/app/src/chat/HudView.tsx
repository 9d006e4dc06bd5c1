/** The status of an agent: one line, with sliders and the rest folded below. */
import { useId } from "react";

import { useTexts } from "../i18n";
import type { Gauge, Hud } from "./hud";

export function HudView({ hud }: { hud: Hud }) {
  const t = useTexts();
  return (
    <details className="hud">
      <summary>{t("hud.line", { mode: hud.mode, vibe: hud.vibe, context: hud.context, tools: hud.tools })}</summary>
      <ul className="hud-sliders" aria-label={t("hud.sliders")}>
        {Object.entries(hud.sliders).map(([key, gauge]) => (
          <Slider key={key} name={key.replaceAll("_", " ")} gauge={gauge} />
        ))}
      </ul>
      <dl>
        <dt>{t("hud.past")}</dt>
        <dd>{hud.past}</dd>
        <dt>{t("hud.present")}</dt>
        <dd>{hud.present}</dd>
        <dt>{t("hud.future")}</dt>
        <dd>{hud.future}</dd>
        <dt>{t("hud.memory")}</dt>
        <dd>{t("hud.memory.state", { loaded: hud.loaded, pending: hud.pending })}</dd>
      </dl>
    </details>
  );
}

function Slider({ name, gauge }: { name: string; gauge: Gauge }) {
  const t = useTexts();
  const id = useId();
  return (
    <li>
      <label htmlFor={id}>{name}</label>
      <meter id={id} min={0} max={100} value={gauge.value} />
      <span className="dim">{t("hud.value", { value: gauge.value, default: gauge.default })}</span>
    </li>
  );
}
