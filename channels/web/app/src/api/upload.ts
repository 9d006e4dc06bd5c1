/** Sends a file and says how far it is. */
import { errorOf } from "./client";

/** How many bytes have moved. `total` is 0 while the other side works. */
export interface Progress {
  bytes: number;
  total: number;
}

/** The answer. Raises ApiError, and AbortError when it is given up. An XMLHttpRequest, because a fetch does not say what
 * it has sent. */
export function upload(path: string, body: File | FormData, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => onProgress({ bytes: loaded, total });
    request.upload.onload = () => onProgress({ bytes: 0, total: 0 });
    request.onload = () => {
      if (request.status === 200) resolve(request.response);
      else reject(errorOf(new Response(null, { status: request.status }), request.response));
    };
    request.onerror = () => reject(errorOf(new Response(null, { status: 503 }), { code: "unreachable", message: "" }));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}
