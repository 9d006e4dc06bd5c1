/** Saves a conversation as a JSON file, with the calls of tools and their results. */
import { api, dataOf } from "../api/client";

/** Raises ApiError. */
export async function saveConversation(id: string): Promise<void> {
  const stored = await dataOf(api.GET("/conversations/{id}", { params: { path: { id }, query: { include: "tools" } } }));
  saveFile(`${id}.json`, JSON.stringify(stored, null, 2), "application/json");
}

function saveFile(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
