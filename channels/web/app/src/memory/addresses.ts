/** The name in the address of the page of remembered texts. No path of memory has a colon. */
export const REMEMBERED = ":chunks";
