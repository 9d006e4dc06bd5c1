/** Adds documents to memory, below `documents/`, where `trunkline memory add` puts them too. */
import { api, ApiError, dataOf } from "../api/client";
import type { TextKey } from "../i18n";

export const FOLDER = "documents";

/** A document that is no text. */
export class NoText extends Error {}

/** The text of a document, as it will be stored. Raises NoText for what only the command can read, such as PDF. */
async function textOf(file: File): Promise<string> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!text.includes("\0")) return text;
  } catch {
    // It is no UTF-8.
  }
  throw new NoText(file.name);
}

/** Returns the path. Raises NoText and ApiError; a document of that name is not replaced. */
export async function addDocument(file: File): Promise<string> {
  const path = `${FOLDER}/${file.name}`;
  const content = await textOf(file);
  await dataOf(api.PUT("/api/memory/file", { body: { path, content, expected: "" } }));
  return path;
}

/** The sentence for what is special about documents; null if any other failure's does. */
export function documentFailure(failure: unknown): TextKey | null {
  if (failure instanceof NoText) return "memory.add.noText";
  return failure instanceof ApiError && failure.code === "conflict" ? "memory.add.exists" : null;
}
