/** Moves all of memory out and in, and says how far it is. */
import { errorOf, type Schemas } from "../api/client";
import { upload, type Progress } from "../api/upload";

/** Raises ApiError, and AbortError when it is given up. */
export async function exportMemory(onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Blob> {
  onProgress({ bytes: 0, total: 0 });
  const response = await fetch("/api/memory/export", { signal });
  if (!response.ok || response.body === null) throw errorOf(response, await response.json().catch(() => null));
  const total = Number(response.headers.get("content-length"));
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    pieces.push(piece.value);
    bytes += piece.value.length;
    onProgress({ bytes, total });
  }
  return new Blob(pieces, { type: "application/x-tar" });
}

interface Import {
  archive: File;
  /** Tell what would change, and change nothing. */
  isTrial: boolean;
}

/** Raises ApiError, and AbortError when it is given up before all is sent. */
export async function importMemory({ archive, isTrial }: Import, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Schemas["MemoryImported"]> {
  return (await upload(`/api/memory/import?dry_run=${isTrial}`, archive, onProgress, signal)) as Schemas["MemoryImported"];
}

/** Hand a file to the browser, which asks where it belongs or puts it where downloads are. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
