/** Saves a conversation with its branches as a file, with the calls of tools and their results. */
import { api, dataOf } from "../api/client";

export type ExportFormat = "markdown" | "json";

const ENDINGS: Record<ExportFormat, string> = { markdown: "md", json: "json" };

/** Raises ApiError. */
export async function saveConversation(id: string, format: ExportFormat): Promise<void> {
  const params = { path: { id }, query: { format } };
  const file = await dataOf(api.GET("/api/conversations/{id}/export", { params, parseAs: "blob" }));
  saveFile(`${id}.${ENDINGS[format]}`, file);
}

function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
