/** The list of sources, as a board: what is there, and for live files how they grow. */
import './common.css';
import './index.css';
import { el } from './dom';
import { bytes, count, moment, percent, seconds } from './format';
import { Events, files, pageOf, words, type BoardLine, type Source } from './server';
import { themeSwitch } from './theme';

/** Pause between two lists. */
const LIST_MS = 5000;

const root = document.getElementById('root')!;
const status = el('span', { class: 'faint', role: 'status' });
const body = el('tbody');
const table = el('table', {},
  el('thead', {}, el('tr', {},
    ...([['Source', ''], ['Kind', ''], ['Size', 'number wide'], ['Changed', 'wide'], ['Rows', 'number'], ['Rows/s', 'number'],
      ['Lag', 'number'], ['Flagged', 'number'], ['Alerts', ''], ['Open', '']] as const).map(([name, kind]) => el('th', { scope: 'col', class: kind }, name)))),
  body);
const main = el('main', {}, table);
root.append(el('header', { class: 'bar' }, el('h1', {}, 'h5bridge'), status, el('span', { class: 'space' }),
  el('a', { href: 'licences.txt' }, 'Licences'), themeSwitch()), main);

const KINDS = { hdf5: 'HDF5', live: 'live', table: 'table' } as const;

/** A line of the board. */
class Line {
  readonly row = el('tr');
  look: BoardLine | null = null;
  /** When the look came, in milliseconds. */
  private at = 0;

  constructor(public source: Source) {
    this.draw();
  }

  update(source: Source) {
    this.source = source;
    this.draw();
  }

  show(look: BoardLine) {
    this.look = look;
    this.at = performance.now();
    this.draw();
  }

  /** Lag, which grows while nothing comes; the age of the newest commit if TIME is not of today. */
  private lag(): string {
    const known = this.look?.lag_seconds ?? this.look?.commit_age_seconds;
    if (known == null) return '';
    return seconds(known + (this.look?.open ? (performance.now() - this.at) / 1000 : 0));
  }

  private alarm(): string {
    const { alerts, problem } = this.look ?? { alerts: [], problem: null };
    return [...(problem ? [`cannot be read: ${problem}`] : []), ...alerts.map(({ text }) => text)].join('; ');
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
      cell(rows === null ? '' : count(Math.max(this.look?.rows ?? 0, rows)), 'number'),
      cell(live && this.look?.rows_per_second != null ? count(Math.round(this.look.rows_per_second)) : '', 'number'),
      cell(live ? this.lag() : '', 'number'),
      cell(live && this.look?.flagged != null ? percent(this.look.flagged) : '', 'number'), cell(live ? this.alarm() : '', 'alarm'), links);
  }
}

const lines = new Map<string, Line>();
/** Looks at files that the list does not have yet. */
const early = new Map<string, BoardLine>();
let leftOut = 0;

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
    else {
      lines.set(source.file, (line = new Line(source)));
      const look = early.get(source.file);
      if (look) line.show(look);
      early.delete(source.file);
    }
    if (body.children[index] !== line.row) body.insertBefore(line.row, body.children[index] ?? null);
  });
  const live = found.filter((source) => source.kind === 'live').length;
  status.textContent = `${count(found.length)} ${found.length === 1 ? 'source' : 'sources'}${live ? `, ${live} live` : ''}${leftOut ? `, ${leftOut} of them not followed` : ''}`;
  status.classList.remove('alarm');
  main.replaceChildren(found.length ? table : el('p', { class: 'message' }, 'The sources contain neither an HDF5 file nor a table.'));
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

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
// one stream for all live files: a browser has six connections to one host
new Events<BoardLine>('live/board', {
  look: (look) => {
    const line = lines.get(look.file);
    if (line) line.show(look);
    else if (early.size < 1000) early.set(look.file, look);
  },
  board: ({ left_out: count }) => {
    leftOut = count;
  },
});
