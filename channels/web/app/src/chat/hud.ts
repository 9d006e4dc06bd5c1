/** The status of an agent that the plugin `trunkline-personality` computes (LIVEHUD). */

/** The value of a slider and its default, in percent. */
export interface Gauge {
  value: number;
  default: number;
}

export interface Hud {
  session: string;
  mode: string;
  vibe: string;
  context: string;
  tools: string;
  past: string;
  present: string;
  future: string;
  loaded: number;
  pending: number;
  sliders: Record<string, Gauge>;
}

const WORDS = ["session", "mode", "vibe", "context", "tools", "past", "present", "future"] as const;

/** The HUD in the data of a status; null for other data, such as that of a newer plugin. */
export function hudOf(name: string, data: Record<string, unknown>): Hud | null {
  const numbers = [data["loaded"], data["pending"]];
  const sliders = data["sliders"];
  const isHud =
    name === "hud" &&
    WORDS.every((word) => typeof data[word] === "string") &&
    numbers.every((one) => typeof one === "number") &&
    typeof sliders === "object" &&
    sliders !== null &&
    Object.values(sliders).every(isGauge);
  return isHud ? (data as unknown as Hud) : null;
}

function isGauge(value: unknown): value is Gauge {
  return typeof value === "object" && value !== null && "value" in value && "default" in value && typeof value.value === "number" && typeof value.default === "number";
}
