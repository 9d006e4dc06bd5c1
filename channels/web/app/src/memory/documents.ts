/** Adds documents to memory, below `documents/`, where `trunkline memory add` puts them too. */
import { ApiError, type Schemas } from "../api/client";
import { upload, type Progress } from "../api/upload";
import { sentence } from "../i18n/errors";
import type { Translate } from "../i18n";

export type MemoryDocument = Schemas["MemoryDocument"];

/** Raises ApiError, and AbortError when it is given up; reading then ends. A document of that name is not replaced. */
export async function addDocument(file: File, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<MemoryDocument> {
  const form = new FormData();
  form.set("file", file);
  return (await upload("/api/memory/documents", form, onProgress, signal)) as MemoryDocument;
}

/** What happened to the document of this name, and what to do. */
export function documentSentence(t: Translate, name: string, failure: unknown): string {
  if (failure instanceof ApiError && failure.code === "conflict") return t("memory.add.exists", { name });
  return `${name}: ${sentence(t, failure)}`;
}
