// Joins what Vite built of local.html and the program h5-page into one page.
// usage: node local.mjs BUILD PROGRAM_WASM LICENCES PAGE
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [build, program, licences, page] = process.argv.slice(2);
const read = (name) => readFileSync(join(build, name), 'utf8');

/** Text that ends no script element. */
const inert = (text) => text.replace(/<(?=\/script|!--|script)/gi, '\\x3c');

let found = 0;
const joined = read('local.html')
  .replace(/<script type="module"[^>]* src="([^"]+)"><\/script>/g, (_, name) => {
    found += 1;
    return `<script type="module">${inert(read(name))}</script>`;
  })
  .replace(/<link rel="stylesheet"[^>]* href="([^"]+)">/g, (_, name) => {
    found += 1;
    return `<style>${read(name)}</style>`;
  });
if (found !== 2 || /(?:src|href)="\.\//.test(joined.slice(0, joined.indexOf('<script')))) {
  throw new Error(`local.html has ${found} scripts and style sheets of its own, expected one of each`);
}
const text = [read('licences.md'), ...licences.split(',').map((name) => readFileSync(name, 'utf8'))].join('\n\n');
const data = (id, content) => `<script id="${id}" type="text/plain">${content}</script>\n`;
writeFileSync(page, joined.replace('</head>', () =>
  `${data('program', readFileSync(program).toString('base64'))}${data('licences', inert(text))}</head>`));
