/** The list of sources, as a board: what is there, and for live files how they grow. */
import './common.css';
import './index.css';
import { Alarms } from './alerts';
import { button, el } from './dom';
import { bytes, count, moment, percent, seconds, utc } from './format';
import { History } from './history';
import { Events, files, hasPlots, pageOf, words, type BoardLine, type Source } from './server';
import { State } from './state';
import { themeSwitch } from './theme';

/** Pause between two lists. */
const LIST_MS = 5000;
/** Seconds for which a file of a rotation is shown. */
const ROTATION = 30;

const state = new State();
const root = document.getElementById('root')!;
const status = el('span', { class: 'faint', role: 'status' });
const alarms = new Alarms();
const history = new History(false);
const rotation = el('a', { hidden: true }, '');

const KINDS = { hdf5: 'HDF5', live: 'live', table: 'table' } as const;

const kindOf = ({ kind, content }: Source) => [KINDS[kind] ?? kind, content ?? ''].filter(Boolean).join(', ');

/** A line of the board. */
class Line {
  readonly row = el('tr');
  look: BoardLine | null = null;
  /** When the look came, in milliseconds. */
  private at = 0;
  private drawn = '';

  constructor(public source: Source) {}

  show(look: BoardLine) {
    const now = new Date().toISOString();
    const { file } = look;
    for (const { rule, text } of look.alerts) {
      if (!this.look?.alerts.some((known) => known.rule === rule)) history.begin(file, rule, text, now);
    }
    for (const { rule } of this.look?.alerts ?? []) if (!look.alerts.some((known) => known.rule === rule)) history.end(file, rule, now);
    this.look = look;
    this.at = performance.now();
    this.draw();
  }

  get rows(): number | null {
    return this.source.rows === null ? null : Math.max(this.look?.rows ?? 0, this.source.rows);
  }

  /** Lag, which grows while nothing comes; the age of the newest commit if TIME is not of today. */
  get lag(): number | null {
    const known = this.look?.lag_seconds ?? this.look?.commit_age_seconds;
    return known == null ? null : known + (this.look?.open ? (performance.now() - this.at) / 1000 : 0);
  }

  get alarm(): string {
    const { alerts, problem } = this.look ?? { alerts: [], problem: null };
    return [...(problem ? [`cannot be read: ${problem}`] : []), ...alerts.map(({ text }) => text)].join('; ');
  }

  draw() {
    const { source, look } = this;
    const { file, bytes: size, modified } = source;
    const live = source.kind === 'live';
    const drawn = JSON.stringify([source, look, live ? Math.floor((performance.now() - this.at) / 1000) : 0]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const cell = (name: string, text: string, kind = '') => el('td', { class: kind, 'data-name': name }, text);
    const links = el('td', { class: 'links', 'data-name': 'Open' });
    if (hasPlots(source) !== false) links.append(el('a', { href: pageOf('ms', file) }, 'Plots'));
    links.append(el('a', { href: pageOf('explore', file) }, 'Explore'));
    const [local, world] = [moment(modified), utc(modified)];
    // the day stands once
    const other = local === world ? ' UTC' : ` (${world.slice(0, 10) === local.slice(0, 10) ? world.slice(11) : world} UTC)`;
    const changed = el('td', { 'data-name': 'Changed', class: 'date' }, local, el('span', { class: 'faint' }, other));
    this.row.dataset.file = file;
    this.row.replaceChildren(
      el('td', { class: 'name' }, el('a', { href: pageOf(hasPlots(source) ? 'ms' : 'explore', file) }, file.slice(folderOf(file).length))),
      cell('Kind', kindOf(source)), cell('Size', bytes(size), 'number'), changed,
      cell('Rows', this.rows === null ? '' : count(this.rows), 'number'),
      cell('Rows/s', live && look?.rows_per_second != null ? count(Math.round(look.rows_per_second)) : '', 'number live'),
      cell('Lag', live && this.lag !== null ? seconds(this.lag) : '', 'number live'),
      cell('Flagged', live && look?.flagged != null ? percent(look.flagged) : '', 'number live'),
      cell('Alerts', live ? this.alarm : '', 'alarm live'), links);
  }
}

// ---- order and filter -----------------------------------------------------------------------------------------------

const COLUMNS: [name: string, kind: string, value: (line: Line) => string | number | null][] = [
  ['Source', '', ({ source }) => source.file], ['Kind', '', ({ source }) => kindOf(source)], ['Size', 'number', ({ source }) => source.bytes],
  ['Changed', '', ({ source }) => (typeof source.modified === 'string' ? Date.parse(source.modified) / 1000 : source.modified)],
  ['Rows', 'number', (line) => line.rows], ['Rows/s', 'number live', ({ look }) => look?.rows_per_second ?? null],
  ['Lag', 'number live', (line) => line.lag], ['Flagged', 'number live', ({ look }) => look?.flagged ?? null],
  ['Alerts', 'live', ({ alarm }) => alarm || null],
];

const folderOf = (file: string) => file.slice(0, file.lastIndexOf('/') + 1);

/** Column and direction of `sort` in the address: `Rows`, or `-Rows` for the largest first. */
function order(): [column: string, sign: number] {
  const text = state.get('sort') || 'Source';
  return text.startsWith('-') ? [text.slice(1), -1] : [text, 1];
}

function sorted(lines: Line[]): Line[] {
  const [name, sign] = order();
  const value = (COLUMNS.find(([column]) => column === name) ?? COLUMNS[0]!)[2];
  const byName = (a: Line, b: Line) => a.source.file.localeCompare(b.source.file, 'en', { numeric: true });
  return lines.sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    // what has no value is last in both directions
    if (one === null || other === null) return Number(one === null) - Number(other === null) || byName(a, b);
    if (typeof one === 'number' && typeof other === 'number') return sign * (one - other) || byName(a, b);
    return sign * String(one).localeCompare(String(other), 'en', { numeric: true }) || byName(a, b);
  });
}

/** All words of the filter stand in the name or the kind. */
function isWanted({ source }: Line): boolean {
  const text = `${source.file} ${kindOf(source)}`.toLowerCase();
  return state.get('filter').toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

const heads = COLUMNS.map(([name, kind]) => {
  const press = button(name, `Sort by ${name}`, () => {
    const [column, sign] = order();
    state.set({ sort: column === name ? `${sign > 0 ? '-' : ''}${name}` : name }, true);
  });
  return el('th', { scope: 'col', class: kind }, press);
});
const table = el('table', {}, el('thead', {}, el('tr', {}, ...heads, el('th', { scope: 'col' }, 'Open'))));
const filter = el('input', { type: 'search', name: 'filter', placeholder: 'name or kind', autocomplete: 'off', spellcheck: 'false' });
filter.addEventListener('input', () => state.set({ filter: filter.value.trim() }, true));
const sorting = el('select', { name: 'sort' }, ...COLUMNS.flatMap(([name]) => [
  el('option', { value: name }, name), el('option', { value: `-${name}` }, `${name}, falling`)]));
sorting.addEventListener('change', () => state.set({ sort: sorting.value }, true));
const tools = el('div', { class: 'bar tools' }, el('label', {}, 'Filter ', filter), el('label', { class: 'sorting' }, 'Sort by ', sorting), rotation);
const message = el('p', { class: 'message', hidden: true });
root.append(el('header', { class: 'bar' }, el('h1', {}, 'h5bridge'), status, el('span', { class: 'space' }),
  el('a', { href: 'licences.txt' }, 'Licences'), themeSwitch()), el('main', {}, tools, alarms.box, history.box, table, message));

// ---- the table ------------------------------------------------------------------------------------------------------

const lines = new Map<string, Line>();
/** Looks at files that the list does not have yet. */
const early = new Map<string, BoardLine>();
let leftOut = 0;

/** The rows of a folder, which can be folded. */
class Folder {
  readonly body = el('tbody');
  private isOpen = true;
  private readonly switch: HTMLButtonElement;
  private readonly head: HTMLElement;

  constructor(readonly name: string) {
    this.switch = button('', '', () => {
      this.isOpen = !this.isOpen;
      place();
    });
    this.head = el('tr', { class: 'folder' }, el('th', { colspan: COLUMNS.length + 1, scope: 'rowgroup' }, this.switch));
  }

  show(found: Line[], isAlone: boolean) {
    const isOpen = this.isOpen || isAlone || state.get('filter') !== '';
    this.switch.textContent = `${isOpen ? '▾' : '▸'} ${this.name || './'} (${count(found.length)})`;
    this.switch.setAttribute('aria-expanded', String(isOpen));
    const wanted = [...(isAlone ? [] : [this.head]), ...(isOpen ? found.map(({ row }) => row) : [])];
    wanted.forEach((row, index) => {
      if (this.body.children[index] !== row) this.body.insertBefore(row, this.body.children[index] ?? null);
    });
    while (this.body.children.length > wanted.length) this.body.lastChild!.remove();
  }
}

const folders = new Map<string, Folder>();

/** Puts the rows where order and filter want them. */
function place() {
  const [column, sign] = order();
  heads.forEach((head, index) => {
    const is = COLUMNS[index]![0] === column;
    if (is) head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
    else head.removeAttribute('aria-sort');
  });
  if (document.activeElement !== filter) filter.value = state.get('filter');
  sorting.value = state.get('sort') || 'Source';
  const wanted = [...lines.values()].filter(isWanted);
  const names = [...new Set(wanted.map(({ source }) => folderOf(source.file)))].sort();
  const bodies = names.map((name) => {
    let folder = folders.get(name);
    if (!folder) folders.set(name, (folder = new Folder(name)));
    folder.show(sorted(wanted.filter(({ source }) => folderOf(source.file) === name)), names.length === 1 && name === '');
    return folder.body;
  });
  const shown = [...table.tBodies];
  if (shown.length !== bodies.length || shown.some((body, index) => body !== bodies[index])) {
    shown.forEach((body) => body.remove());
    table.append(...bodies);
  }
  const live = [...lines.values()].filter(({ source }) => source.kind === 'live');
  const left = leftOut ? `, ${leftOut} of them not followed` : '';
  const part = wanted.length === lines.size ? '' : `${count(wanted.length)} of `;
  status.textContent = `${part}${count(lines.size)} ${lines.size === 1 ? 'source' : 'sources'}${live.length ? `, ${live.length} live` : ''}${left}`;
  table.classList.toggle('still', !live.length);
  table.hidden = !wanted.length;
  history.box.hidden = !live.length;
  message.hidden = wanted.length > 0;
  message.textContent = lines.size ? 'No source has these words in its name or kind.' : 'The sources contain neither an HDF5 file nor a table.';
  const round = live.filter(({ source }) => hasPlots(source));
  rotation.hidden = round.length < 2;
  rotation.textContent = `Show ${round.length} live files in turn`;
  if (round[0]) rotation.href = `${pageOf('ms', sorted(round)[0]!.source.file)}&rotate=${ROTATION}`;
}

async function list(first: boolean) {
  const found = await files();
  const only = found[0];
  if (first && found.length === 1 && only && !new URLSearchParams(location.search).has('list')) {
    location.replace(pageOf(hasPlots(only) ? 'ms' : 'explore', only.file));
    return;
  }
  const names = new Set(found.map((source) => source.file));
  for (const name of lines.keys()) if (!names.has(name)) lines.delete(name);
  for (const source of found) {
    let line = lines.get(source.file);
    if (!line) lines.set(source.file, (line = new Line(source)));
    line.source = source;
    const look = early.get(source.file);
    if (look) line.show(look);
    early.delete(source.file);
    line.draw();
  }
  place();
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function follow() {
  for (let first = true; ; first = false) {
    try {
      if (!document.hidden || first) await list(first);
      alarms.say('list', null);
    } catch (error) {
      alarms.say('list', words(error));
    }
    await pause(LIST_MS);
  }
}

state.onChange(place);
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
