/** Files that will be sent with a message. Each is uploaded as soon as it is chosen, dropped or pasted. */
import { useCallback, useState } from "react";

import { errorOf } from "../api/client";
import { newId } from "../api/socket";

export interface Attachment {
  key: string;
  name: string;
  /** The id of the uploaded file; "" until it is there. */
  id: string;
  failure: unknown;
}

export interface Attachments {
  files: Attachment[];
  isUploading: boolean;
  add: (files: Iterable<File>) => void;
  remove: (key: string) => void;
  clear: () => void;
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
        setFiles((before) => [...before, { key, name: file.name, id: "", failure: null }]);
        upload(file).then((id) => change(key, { id }), (failure: unknown) => change(key, { failure }));
      }
    },
    [change],
  );
  const remove = useCallback((key: string) => setFiles((before) => before.filter((one) => one.key !== key)), []);
  const clear = useCallback(() => setFiles([]), []);
  const isUploading = files.some((file) => file.id === "" && file.failure === null);
  return { files, isUploading, add, remove, clear };
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
