/** The last output of a running call, put together from the pieces that arrive. */

export interface LiveOutput {
  text: string;
  /** How many characters the call has printed so far, as the gateway counts them: an emoji is one. */
  end: number;
}

export const NO_OUTPUT: LiveOutput = { text: "", end: 0 };

const MAX_LENGTH = 20_000;
const GAP = "\n[…]\n";

/** The output after a piece that begins at character `offset`. A piece may repeat what is there already, and what came
 * too fast is missing. */
export function withOutput(before: LiveOutput, offset: number, piece: string): LiveOutput {
  const characters = Array.from(piece);
  const fresh = characters.slice(Math.max(0, before.end - offset)).join("");
  if (fresh === "") return before;
  const gap = offset > before.end ? GAP : "";
  return { text: (before.text + gap + fresh).slice(-MAX_LENGTH), end: offset + characters.length };
}

/** The sequences by which programs colour a terminal, name its window and move its cursor. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;

/** A line that a program draws anew, such as a progress bar, up to its last drawing. */
const REDRAWN = /^.*\r(?!\r?\n|$)/gm;

/** Output of a program without what only a terminal understands. */
export function plainOutput(text: string): string {
  return text.replace(SEQUENCES, "").replace(REDRAWN, "");
}
