import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Nothing may be inlined: the gateway's Content-Security-Policy lets no inline script or style run.
export default defineConfig({
  plugins: [react()],
  build: {
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: "es2022",
  },
  server: { proxy: Object.fromEntries(["/api", "/conversations", "/v1", "/healthz", "/readyz"].map((path) => [path, "http://127.0.0.1:8420"])) },
});
