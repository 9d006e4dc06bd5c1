import react from "@vitejs/plugin-react";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

import { de } from "./src/i18n/de";
import { en } from "./src/i18n/en";

const LOCALES = [
  { tag: "en", name: "English", texts: en },
  { tag: "de", name: "Deutsch", texts: de },
];

/** Writes each language as JSON, for the hook `trunkline_locales`. */
function locales(): Plugin {
  return {
    name: "locales",
    generateBundle() {
      for (const locale of LOCALES) {
        this.emitFile({ type: "asset", fileName: `locales/${locale.tag}.json`, source: `${JSON.stringify(locale, null, 2)}\n` });
      }
    },
  };
}

/** The texts of notices in these languages: the service worker shows them while no page is open. */
const NOTICES = Object.fromEntries(
  LOCALES.map(({ tag, texts }) => [
    tag,
    { one: texts["push.notice.one"], many: texts["push.notice.many"], test: texts["push.notice.test"] },
  ]),
);

/** Writes the service worker with the names of all files that are built. */
function serviceWorker(): Plugin {
  return {
    name: "service-worker",
    generateBundle(_, bundle) {
      const files = JSON.stringify(Object.keys(bundle).filter((name) => name.startsWith("assets/")).map((name) => `/${name}`).sort());
      const version = createHash("sha256").update(files).digest("hex").slice(0, 16);
      const source = readFileSync("service-worker.js", "utf8").replace("__FILES__", files).replace("__VERSION__", version).replace("__NOTICES__", () => JSON.stringify(NOTICES));
      this.emitFile({ type: "asset", fileName: "sw.js", source });
    },
  };
}

// Nothing may be inlined: the gateway's Content-Security-Policy lets no inline script or style run.
export default defineConfig({
  plugins: [react(), locales(), serviceWorker()],
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: "es2022",
  },
  server: { proxy: Object.fromEntries(["/api", "/conversations", "/v1", "/healthz", "/readyz"].map((path) => [path, "http://127.0.0.1:8420"])) },
});
