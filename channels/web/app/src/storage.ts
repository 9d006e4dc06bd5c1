/** What this browser keeps. A browser that keeps nothing, as in some private windows, is no error. */

const PREFIX = "trunkline.";

export function load<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

export function save(key: string, value: unknown): void {
  try {
    if (value === null || value === "") localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works without it.
  }
}

/** Remove everything that was kept, except the choices of theme and language, and the texts of the language. */
export function forget(): void {
  const kept = ["theme", "language", "locale"].map((key) => PREFIX + key);
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && !kept.includes(key)) localStorage.removeItem(key);
    }
  } catch {
    // As above.
  }
}
