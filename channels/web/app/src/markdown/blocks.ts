/** Divides Markdown into its top-level blocks, so that only the block that grows is rendered again. */
import { Lexer } from "marked";
import remend from "remend";

export function blocksOf(text: string, isGrowing: boolean): string[] {
  const whole = isGrowing ? remend(text) : text; // closes what is open, such as **bold, until the rest arrives
  return Lexer.lex(whole, { gfm: true }).map((token) => token.raw);
}
