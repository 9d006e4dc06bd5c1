/** The fields of a form, from the JSON Schema of a section. */
import type { Schemas } from "../api/client";

/** What a form can show. `file` is a field that is changed in trunkline.toml alone. */
export type FieldKind = "text" | "number" | "boolean" | "choice" | "list" | "secret" | "file";

export interface Field {
  name: string;
  kind: FieldKind;
  /** The kind of what a list holds, or of a number. */
  isWhole: boolean;
  choices: string[];
  minimum: number | undefined;
  maximum: number | undefined;
  /** The default as a text, "" without one. */
  standard: string;
}

interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  readOnly?: boolean;
  default?: unknown;
  minimum?: number;
  maximum?: number;
}

const SECRET = "#/$defs/Secret";

export function fieldsOf(section: Schemas["SettingsSection"]): Field[] {
  const properties = (section.schema as { properties?: Record<string, Schema> }).properties ?? {};
  return Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, schema.default));
}

function fieldOf(name: string, whole: Schema, standard: unknown): Field {
  const choices = (whole.anyOf ?? [whole]).filter((one) => one.type !== "null");
  const schema = choices.length === 1 && choices[0] !== undefined ? choices[0] : {};
  const isWhole = (schema.items?.type ?? schema.type) === "integer";
  const kind = whole.readOnly === true || schema.items?.readOnly === true ? "file" : kindOf(schema);
  return {
    name,
    kind,
    isWhole,
    choices: (schema.enum ?? []).map(String),
    minimum: schema.minimum,
    maximum: schema.maximum,
    standard: textOf(kind, standard),
  };
}

function kindOf(schema: Schema): FieldKind {
  if (schema.$ref === SECRET) return "secret";
  if (schema.readOnly === true) return "file";
  if (schema.enum !== undefined) return "choice";
  if (schema.type === "string") return "text";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "boolean") return "boolean";
  const items = schema.items?.type ?? "";
  return schema.type === "array" && ["string", "integer", "number"].includes(items) ? "list" : "file";
}

/** The value as the text of its control; a list has one line for each entry. */
export function textOf(kind: FieldKind, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (kind === "secret") return (value as { env?: string }).env ?? "";
  if (kind === "list") return (value as (string | number)[]).join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value to send for the text of a control. Null removes the setting, so that its default holds. */
export function valueOf(field: Field, text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (field.kind === "secret") return { env: trimmed };
  if (field.kind === "boolean") return trimmed === "true";
  if (field.kind === "number") return Number(trimmed);
  if (field.kind !== "list") return text;
  const entries = text.split("\n").map((one) => one.trim()).filter(Boolean);
  return field.isWhole ? entries.map((one) => (Number.isNaN(Number(one)) ? one : Number(one))) : entries;
}
