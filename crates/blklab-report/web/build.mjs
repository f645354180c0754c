// SPDX-License-Identifier: MIT OR Apache-2.0
// Bundles the page's script and style into dist/, which is committed: building blklab
// needs no node. `node build.mjs --check` says whether dist/ is what src/ gives.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const result = await build({
  entryPoints: [{ in: "src/page.ts", out: "report" }, { in: "src/page.css", out: "report-style" }],
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  write: false,
});

// A script must not end the element that it is in.
const files = new Map();
for (const file of result.outputFiles) {
  const name = file.path.endsWith(".css") ? "report.css" : "report.js";
  files.set(name, file.text.replaceAll("</script", "<\\/script"));
}
const notice = async (what, name) => {
  const licence = await readFile(`node_modules/${name}/LICENSE`, "utf8");
  const { version } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
  return `${what}: ${name === "uplot" ? "uPlot" : name} ${version}\n\n${licence.replaceAll("--", "- -").trim()}\n`;
};
const notices = [await notice("Charts", "uplot"), await notice("Unpacking", "fflate")];
files.set("LICENCES.txt", notices.join("\n"));

let differs = false;
for (const [name, text] of files) {
  const path = `dist/${name}`;
  if (process.argv.includes("--check")) {
    const there = await readFile(path, "utf8").catch(() => "");
    if (there !== text) {
      console.error(`${path} is not what src/ gives: make web`);
      differs = true;
    }
  } else {
    await writeFile(path, text);
    console.log(`${path} ${text.length}`);
  }
}
process.exit(differs ? 1 : 0);
