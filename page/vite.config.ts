// Html files, each complete in itself: scripts and styles inlined. One of them in each run, by its
// mode; each goes to where the Erlang module that gives it out looks for it.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The page, and the application in whose priv it lies: fairnif_check_page, fairnif_watch_web_http. */
const PAGES: Record<string, string> = { report: "fairnif_check", live: "fairnif_watch_console" };

/** A page's policy allows inline scripts; of the built page only its own, by its hash. */
const scriptHash: Plugin = {
  name: "script-hash",
  enforce: "post",
  generateBundle: {
    // After the inlining, which does this too.
    order: "post",
    handler(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
        const html = String(file.source);
        const [, script] = html.match(/<script type="module"[^>]*>([\s\S]+?)<\/script>/) ?? [];
        if (!script) throw new Error(`${file.fileName} has no script in it`);
        const hash = createHash("sha256").update(script).digest("base64");
        file.source = html.replace(
          "script-src 'unsafe-inline'",
          () => `script-src 'sha256-${hash}'`,
        );
      }
    },
  },
};

export default defineConfig(({ mode }) => {
  const page = mode in PAGES ? mode : "report";
  return {
    plugins: [viteSingleFile({ removeViteModuleLoader: true }), scriptHash],
    build: {
      target: "es2022",
      outDir: `../apps/${PAGES[page]}/priv/page`,
      emptyOutDir: true,
      rollupOptions: { input: `${page}.html` },
    },
  };
});
