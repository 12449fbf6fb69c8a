// Writes torc_framework/dashboard/static/vendor/ from the versions in package-lock.json.
// usage: npm ci && npm run vendor [-- FOLDER]

import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "torc_framework", "dashboard", "static", "vendor");
const modules = join(here, "node_modules");

// One file for components: an import map would have to stand inline in the page, which the page's
// content security policy forbids, and "preact/hooks" imports "preact" by its bare name.
const BUNDLES = {
  "ui.js": `
    export { Component, Fragment, createContext, render } from "preact";
    export { useEffect, useLayoutEffect, useRef, useState, useMemo, useCallback, useContext, useId } from "preact/hooks";
    export { html } from "htm/preact";
    export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "@preact/signals";`,
  "uplot.js": `export { default } from "uplot";`,
  "anser.js": `export { default } from "anser";`,
};
// Types for the check of the page's modules; browsers do not load them.
const TYPES = { "ui.d.ts": BUNDLES["ui.js"], "uplot.d.ts": BUNDLES["uplot.js"], "anser.d.ts": BUNDLES["anser.js"] };
const LICENCES = ["preact", "htm", "@preact/signals", "@preact/signals-core", "uplot", "anser"];

function licenceOf(name) {
  const folder = join(modules, name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return file ? readFileSync(join(folder, file), "utf8").trim() : null;
}

function noticeOf(name) {
  const about = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
  const text = licenceOf(name) ?? `Licence: ${about.license} (the package has no licence file; see ${about.homepage})`;
  return `${name} ${about.version} (${about.license})\n\n${text}\n`;
}

mkdirSync(target, { recursive: true });
for (const [file, contents] of Object.entries(BUNDLES)) {
  await build({
    stdin: { contents, resolveDir: here },
    outfile: join(target, file),
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    banner: { js: "// Made by web/build_vendor.mjs; versions and licences: LICENCES.txt." },
  });
}
for (const [file, contents] of Object.entries(TYPES)) {
  writeFileSync(join(target, file), `${contents.trim().replace(/^ +/gm, "")}\n`);
}
copyFileSync(join(modules, "uplot", "dist", "uPlot.min.css"), join(target, "uplot.css"));
writeFileSync(join(target, "LICENCES.txt"), LICENCES.map(noticeOf).join(`\n${"-".repeat(80)}\n\n`));
