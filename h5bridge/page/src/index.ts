/** The list of sources, as a board: what is there, and for live files how they grow. */
import './common.css';
import './index.css';
import { el } from './dom';
import { bytes, count, moment, percent, seconds } from './format';
import { files, mainRows, pageOf, words, type Look, type Source } from './server';
import { themeSwitch } from './theme';

/** Pause between two lists. */
const LIST_MS = 5000;
/** Event streams open at a time: a browser has six connections to one host. */
const LISTENERS = 2;
/** How long one stream is listened to before the next file has its turn. */
const LISTEN_MS = 3000;

const root = document.getElementById('root')!;
const status = el('span', { class: 'faint', role: 'status' });
const body = el('tbody');
const table = el('table', {},
  el('thead', {}, el('tr', {},
    ...([['Source', ''], ['Kind', ''], ['Size', 'number wide'], ['Changed', 'wide'], ['Rows', 'number'], ['Rows/s', 'number'],
      ['Lag', 'number'], ['Flagged', 'number'], ['Open', '']] as const).map(([name, kind]) => el('th', { scope: 'col', class: kind }, name)))),
  body);
const main = el('main', {}, table);
root.append(el('header', { class: 'bar' }, el('h1', {}, 'h5bridge'), status, el('span', { class: 'space' }),
  el('a', { href: 'licences.txt' }, 'Licences'), themeSwitch()), main);

const KINDS = { hdf5: 'HDF5', live: 'live', table: 'table' } as const;

/** A line of the board. */
class Line {
  readonly row = el('tr');
  source: Source;
  look: Look | null = null;
  private before: { rows: number; at: number } | null = null;
  private rate: number | null = null;

  constructor(source: Source) {
    this.source = source;
    this.update(source);
  }

  update(source: Source) {
    this.source = source;
    const at = performance.now() / 1000;
    if (source.kind === 'live' && source.rows !== null) {
      if (this.before) this.rate = Math.max(0, source.rows - this.before.rows) / Math.max(at - this.before.at, 0.001);
      this.before = { rows: source.rows, at };
    }
    this.draw();
  }

  draw() {
    const { file, kind, measurement_set, bytes: size, modified, rows } = this.source;
    const live = kind === 'live';
    const cell = (text: string, kindOf = '') => el('td', { class: kindOf }, text);
    const links = el('td', { class: 'links' });
    if (measurement_set !== false) links.append(el('a', { href: pageOf('ms', file) }, 'Plots'));
    links.append(el('a', { href: pageOf('explore', file) }, 'Explore'));
    this.row.dataset.file = file;
    this.row.replaceChildren(
      el('td', { class: 'name' }, el('a', { href: pageOf(measurement_set ? 'ms' : 'explore', file) }, file)),
      cell(`${KINDS[kind] ?? kind}${measurement_set ? ', MeasurementSet' : ''}`), cell(bytes(size), 'number wide'), cell(moment(modified), 'wide'),
      cell(rows === null ? '' : count(this.look ? Math.max(mainRows(this.look), rows) : rows), 'number'),
      cell(live && this.rate !== null ? count(Math.round(this.rate)) : '', 'number'),
      cell(live && this.look ? seconds(this.look.lag_seconds ?? this.look.commit_age_seconds) : '', 'number'),
      cell(live && this.look ? percent(this.look.flagged) : '', 'number'), links);
  }
}

const lines = new Map<string, Line>();

async function list(first: boolean) {
  const found = await files();
  const only = found[0];
  if (first && found.length === 1 && only && !new URLSearchParams(location.search).has('list')) {
    location.replace(pageOf(only.measurement_set ? 'ms' : 'explore', only.file));
    return;
  }
  const names = new Set(found.map((source) => source.file));
  for (const [name, line] of lines) {
    if (!names.has(name)) {
      line.row.remove();
      lines.delete(name);
    }
  }
  found.forEach((source, index) => {
    let line = lines.get(source.file);
    if (line) line.update(source);
    else lines.set(source.file, (line = new Line(source)));
    if (body.children[index] !== line.row) body.insertBefore(line.row, body.children[index] ?? null);
  });
  const live = found.filter((source) => source.kind === 'live').length;
  status.textContent = `${count(found.length)} ${found.length === 1 ? 'source' : 'sources'}${live ? `, ${live} live` : ''}`;
  status.classList.remove('alarm');
  main.replaceChildren(found.length ? table : el('p', { class: 'message' }, 'The sources contain neither an HDF5 file nor a table.'));
}

/** One look at a file, or null. */
function glance(file: string): Promise<Look | null> {
  return new Promise((resolve) => {
    const stream = new EventSource(`live/events?file=${encodeURIComponent(file)}`);
    const done = (look: Look | null) => {
      clearTimeout(timer);
      stream.close();
      resolve(look);
    };
    const timer = setTimeout(() => done(null), LISTEN_MS);
    stream.addEventListener('look', (event) => done(JSON.parse((event as MessageEvent<string>).data) as Look));
    stream.addEventListener('end', () => done(null));
    stream.addEventListener('error', () => done(null));
  });
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Listens to one live file after another. */
async function listen(turn: () => string | undefined) {
  for (;;) {
    const file = document.hidden ? undefined : turn();
    if (file === undefined) {
      await pause(1000);
      continue;
    }
    const look = await glance(file);
    const line = lines.get(file);
    if (line && look) {
      line.look = look;
      line.draw();
    }
    await pause(look ? 500 : 1000);
  }
}

let at = 0;
function turn(): string | undefined {
  const live = [...lines.values()].filter((line) => line.source.kind === 'live');
  return live.length ? live[at++ % live.length]!.source.file : undefined;
}

async function follow() {
  for (let first = true; ; first = false) {
    try {
      if (!document.hidden || first) await list(first);
    } catch (error) {
      status.textContent = words(error);
      status.classList.add('alarm');
    }
    await pause(LIST_MS);
  }
}

void follow();
for (let n = 0; n < LISTENERS; n += 1) void listen(turn);
