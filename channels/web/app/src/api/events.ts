/** The server-sent events of a turn. */
import type { Schemas } from "./client";

interface EventData {
  "text-delta": Schemas["TextDeltaData"];
  "text-reset": Schemas["TextResetData"];
  status: Schemas["StatusData"];
  "tool-call": Schemas["ToolCallData"];
  "tool-result": Schemas["ToolOutputData"] | Schemas["ToolFailureData"];
  "approval-request": Schemas["ApprovalRequestData"];
  "approval-settled": Schemas["ApprovalSettledData"];
  done: Schemas["DoneData"];
  error: Schemas["Error"];
}

/** An event, with its position in the turn. The stream goes on behind that position. */
export type TurnEvent = { [Name in keyof EventData]: { name: Name; data: EventData[Name]; id: string } }[keyof EventData];

/** Read the events of a response until it ends. Comments and fields that are not known are skipped. */
export async function* readEvents(response: Response): AsyncGenerator<TurnEvent> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      buffer += value;
      const frames = buffer.split("\n\n");
      buffer = frames.pop() ?? "";
      for (const frame of frames) {
        const event = parseFrame(frame);
        if (event !== null) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parseFrame(frame: string): TurnEvent | null {
  const fields = new Map<string, string>();
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
  }
  const data = fields.get("data");
  if (data === undefined) return null;
  return { name: fields.get("event") ?? "", data: JSON.parse(data) as unknown, id: fields.get("id") ?? "" } as TurnEvent;
}
