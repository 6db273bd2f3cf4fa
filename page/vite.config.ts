// One html file, complete in itself: scripts and styles inlined. It goes to where the Erlang module
// fairnif_lab_page looks for it.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: "es2022",
    outDir: "../apps/fairnif_lab/priv/page",
    emptyOutDir: true,
    rollupOptions: { input: "report.html" },
  },
});
