/** Light and dark: as the system, or as chosen. */
import { useEffect, useState } from "react";

import { load, save } from "./storage";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => load<Theme>("theme", "system"));
  useEffect(() => {
    const root = document.documentElement;
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    save("theme", theme);
  }, [theme]);
  return [theme, setTheme];
}
