/** Moves all of memory out and in, and says how far it is. */
import { errorOf, type Schemas } from "../api/client";

/** How many bytes have moved. `total` is 0 while the other side works. */
export interface Progress {
  bytes: number;
  total: number;
}

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

/** Raises ApiError, and AbortError when it is given up before all is sent. An XMLHttpRequest, because a fetch does not say
 * what it has sent. */
export function importMemory({ archive, isTrial }: Import, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Schemas["MemoryImported"]> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/memory/import?dry_run=${isTrial}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => onProgress({ bytes: loaded, total });
    request.upload.onload = () => onProgress({ bytes: 0, total: 0 });
    request.onload = () => {
      if (request.status === 200) resolve(request.response as Schemas["MemoryImported"]);
      else reject(errorOf(new Response(null, { status: request.status }), request.response));
    };
    request.onerror = () => reject(errorOf(new Response(null, { status: 503 }), { code: "unreachable", message: "" }));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.send(archive);
  });
}

/** Hand a file to the browser, which asks where it belongs or puts it where downloads are. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
