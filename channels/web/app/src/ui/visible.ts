/** Marks that change the direction of what follows. With them a text reads in another order than it is: a command as
 * another command, an address as another address. */
const DIRECTIONS = /[\u202A-\u202E\u2066-\u2069]/g;

/** A text of a model, a tool or a file as it may be shown: each mark of direction is a �, as in the terminal. */
export function visible(text: string): string {
  return text.replace(DIRECTIONS, "\uFFFD");
}
