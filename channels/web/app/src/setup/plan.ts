/** Who is to answer: a model that is set up already, or settings to save for the next start. */
import { api, dataOf, type Schemas } from "../api/client";

export interface Plan {
  adapter: string;
  /** "" is the adapter's own choice. */
  model: string;
  /** The settings of the adapter to save; null if it answers without a restart. */
  settings: Record<string, string> | null;
}

/** The model of this installation, whatever it is. */
export const AS_IT_IS: Plan = { adapter: "", model: "", settings: null };

const KEY = "api_key";

export function planFor(vendor: Schemas["VendorItem"]): Plan {
  const keys = Object.entries(vendor.keys ?? {});
  const key = (keys.find(([, isSet]) => isSet) ?? keys[0])?.[0];
  return { adapter: vendor.adapter, model: "", settings: vendor.takes_key && key !== undefined ? { [KEY]: key } : {} };
}

export function planForServer(vendor: Schemas["VendorItem"], server: Schemas["ModelServerItem"]): Plan {
  return { adapter: vendor.adapter, model: server.models?.[0] ?? "", settings: { [vendor.address ?? ""]: server.address } };
}

/** The settings of a vendor that the person fills in. */
export function questionsOf(vendor: Schemas["VendorItem"]): string[] {
  const hasKey = Object.keys(vendor.keys ?? {}).length > 0;
  return [
    ...(vendor.takes_key && hasKey ? [KEY] : []),
    ...(vendor.address && !hasKey ? [vendor.address] : []),
    ...(vendor.fields ?? []).map((one) => one.name),
  ];
}

/** Save the settings of a plan for the next start. */
export async function saveSettings(plan: Plan): Promise<void> {
  const texts = Object.entries({ ...plan.settings, model: plan.model }).filter(([, text]) => text.trim() !== "");
  const values = Object.fromEntries(texts.map(([name, text]) => [name, name === KEY ? { env: text.trim() } : text.trim()]));
  await change(`adapters.${plan.adapter}`, values);
  await change("runtime", { provider_adapter: plan.adapter });
}

async function change(section: string, values: Record<string, unknown>): Promise<void> {
  await dataOf(api.PATCH("/api/settings/{section}", { params: { path: { section } }, body: { values } }));
}

/** Whether a monitor has the adapter, and can ask it. */
export async function isReady(adapter: string): Promise<boolean> {
  const { adapters } = await dataOf(api.GET("/api/models"));
  return adapters.some((one) => one.adapter === adapter);
}

/** Make the block if it is not there, and give it its settings. */
export async function prepareBlock(name: string, config: Record<string, unknown>): Promise<void> {
  const { blocks } = await dataOf(api.GET("/api/blocks"));
  if (!blocks.some((one) => one.name === name)) await dataOf(api.POST("/api/blocks", { body: { name } }));
  await dataOf(api.PATCH("/api/blocks/{name}", { params: { path: { name } }, body: { config } }));
}
