/** Files that will be sent with a message. Each is uploaded as soon as it is chosen, dropped or pasted. A document may go
 * into memory instead, just before the message is sent. */
import { useCallback, useState } from "react";

import { api, errorOf } from "../api/client";
import { newId } from "../api/socket";
import { addDocument } from "../memory/documents";

export interface Attachment {
  key: string;
  name: string;
  file: File;
  /** The id of the uploaded file; "" until it is there. */
  id: string;
  toMemory: boolean;
  /** Set while it is put into memory; to give that up. */
  storing: AbortController | null;
  failure: unknown;
}

export interface Attachments {
  files: Attachment[];
  /** Whether a file is on its way. */
  isBusy: boolean;
  add: (files: Iterable<File>) => void;
  /** A file that is removed while files are put into memory gives up the sending. */
  remove: (key: string) => void;
  /** Removes the files of now; those that were added since stay. */
  clear: () => void;
  chooseMemory: (key: string, toMemory: boolean) => void;
  /** Puts the files into memory that were chosen for it. The paths there; null if one was refused, and it says why. */
  store: () => Promise<string[] | null>;
}

export function useAttachments(): Attachments {
  const [files, setFiles] = useState<Attachment[]>([]);
  const change = useCallback((key: string, changes: Partial<Attachment>) => {
    setFiles((before) => before.map((one) => (one.key === key ? { ...one, ...changes } : one)));
  }, []);
  const add = useCallback(
    (chosen: Iterable<File>) => {
      for (const file of chosen) {
        const key = newId();
        setFiles((before) => [...before, { key, name: file.name, file, id: "", toMemory: false, storing: null, failure: null }]);
        upload(file).then((id) => change(key, { id }), (failure: unknown) => change(key, { failure }));
      }
    },
    [change],
  );
  const remove = (key: string) => {
    for (const one of files) one.storing?.abort();
    setFiles((before) => before.filter((one) => one.key !== key));
  };
  const clear = () => setFiles((before) => before.filter((one) => !files.some((sent) => sent.key === one.key)));
  const chooseMemory = (key: string, toMemory: boolean) => change(key, { toMemory, failure: null });
  const store = async () => {
    const paths: string[] = [];
    for (const { key, file, id } of files.filter((one) => one.toMemory)) {
      const storing = new AbortController();
      change(key, { storing, failure: null });
      try {
        paths.push((await addDocument(file, () => undefined, storing.signal)).path);
      } catch (failure) {
        change(key, { storing: null, failure });
        return null;
      }
      change(key, { storing: null });
      // The message does not take it; if this fails, the upload expires.
      if (id) void api.DELETE("/v1/files/{id}", { params: { path: { id } } }).catch(() => undefined);
    }
    return paths;
  };
  return { files, isBusy: files.some(isBusy), add, remove, clear, chooseMemory, store };
}

/** Whether a file is uploaded or put into memory. */
export function isBusy(file: Attachment): boolean {
  return file.storing !== null || (file.id === "" && file.failure === null && !file.toMemory);
}

/** Whether a file is one of those that memory takes. */
export function isDocument(file: Attachment): boolean {
  return !file.file.type.startsWith("image/");
}

/** The files of a paste or a drop; none if it is text. */
export function filesOf(data: DataTransfer | null): File[] {
  return Array.from(data?.files ?? []);
}

/** Raises ApiError. */
async function upload(file: File): Promise<string> {
  const form = new FormData();
  form.set("purpose", "user_data");
  form.set("file", file);
  const response = await fetch("/v1/files", { method: "POST", body: form }).catch(() => null);
  const body: unknown = await response?.json().catch(() => null);
  if (response === null) throw errorOf(new Response(null, { status: 503 }), { code: "unreachable", message: "" });
  if (!response.ok) throw errorOf(response, openAiError(body));
  return (body as { id: string }).id;
}

/** Errors below `/v1` have OpenAI's form. */
function openAiError(body: unknown): unknown {
  return typeof body === "object" && body !== null && "error" in body ? body.error : body;
}
