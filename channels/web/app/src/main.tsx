/** The start of the app. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import { LanguageProvider } from "./i18n";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");
createRoot(root).render(
  <StrictMode>
    <LanguageProvider>
      <App />
    </LanguageProvider>
  </StrictMode>,
);

// A page without TLS that is not this machine's has none. Without it the app works, but needs the gateway to open.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  window.addEventListener("load", () => void navigator.serviceWorker.register("/sw.js").catch(() => undefined));
}
