// Compresses what Vite built into dist/, and lists it for the server.
// usage: node pack.mjs BUILD DIST ASSETS_RS LICENSE_APACHE
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const [build, dist, list, apache] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

/** Names of the files below a folder, with slashes, sorted. */
function names(folder, prefix = '') {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? names(path, `${prefix}${name}/`) : [`${prefix}${name}`];
  }).sort();
}

const notice = readFileSync(join(build, 'licences.md'), 'utf8').replace(/^# Licenses\s+/, '').trimEnd();
const text = ['h5bridge: the page. It contains the packages below, under the licences given.', notice,
  readFileSync(join(here, 'icons.txt'), 'utf8').trimEnd(), readFileSync(apache, 'utf8').trimEnd()].join(`\n\n${'-'.repeat(80)}\n\n`);
const files = new Map(names(build).filter((name) => name !== 'licences.md').map((name) => [name, readFileSync(join(build, name))]));
files.set('licences.txt', Buffer.from(`${text}\n`));

rmSync(dist, { recursive: true, force: true });
let bytes = 0;
for (const [name, content] of files) {
  const path = join(dist, `${name}.gz`);
  mkdirSync(dirname(path), { recursive: true });
  const packed = gzipSync(content, { level: 9 }); // Node writes no time of change into the header
  packed[9] = 255; // "unknown" for the operating system
  bytes += packed.length;
  writeFileSync(path, packed);
}
const lines = [...files.keys()].sort().map((name) => `    asset!("${name}"),\n`).join('');
writeFileSync(list, `//! Files of the web page in h5bridge/page/dist, compressed by gzip. Written by \`scripts/page\`: do not edit.

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../page/dist/", $name, ".gz")).as_slice())
    };
}

/// The files of the web page: address below the root of the server, and content compressed by gzip, sorted by address.
pub(super) static ASSETS: &[(&str, &[u8])] = &[
${lines}];
`);
process.stdout.write(`${files.size} files, ${bytes} bytes compressed\n`);
