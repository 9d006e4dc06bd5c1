/** What this browser is called in the list of sessions, such as "Firefox, Linux". */
const SHORT: Record<string, string> = { Edg: "Edge", OPR: "Opera" };
/** The names that other browsers also claim come last. */
const BROWSERS = ["Edg", "OPR", "Firefox", "Chrome", "Safari"];
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "Mac OS", "CrOS", "Linux"];

export function browserName(): string {
  const first = (names: string[]) => names.find((name) => navigator.userAgent.includes(name)) ?? "";
  const name = first(BROWSERS);
  return [SHORT[name] ?? name, first(SYSTEMS)].filter(Boolean).join(", ");
}
