/** The names of the pages of memory in addresses. No path of memory has a colon. */
export const REMEMBERED = ":chunks";
export const GRAPH = ":graph";
export const TRANSFER = ":transfer";
