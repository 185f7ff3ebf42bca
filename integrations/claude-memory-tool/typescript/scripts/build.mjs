// Builds `dist`: the same sources as ES modules and as CommonJS, each with its own types.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
rmSync(join(root, "dist"), { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.cjs.json"]) {
  execFileSync(process.execPath, [compiler, "--project", join(root, project)], { stdio: "inherit" });
}
writeFileSync(join(root, "dist/cjs/package.json"), '{ "type": "commonjs" }\n');
