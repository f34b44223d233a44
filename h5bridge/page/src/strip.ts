/** The strip of numbers about a growing file, from its events, and that of a file that does not grow. */
import type { Description } from './describe';
import { el } from './dom';
import { bytes, clock, count, day, percent, seconds, short } from './format';
import { mainRows, type Look } from './server';

const FIELDS: [name: string, value: (look: Look, age: number) => string][] = [
  ['rows', (look) => count(mainRows(look))],
  ['rows/s', (look) => (look.rows_per_second == null ? '–' : count(Math.round(look.rows_per_second)))],
  ['rate', (look) => (look.bytes_per_second == null ? '–' : `${bytes(Math.round(look.bytes_per_second))}/s`)],
  ['commit age', (look, age) => (look.commit_age_seconds == null ? '–' : seconds(look.commit_age_seconds + age))],
  ['lag', (look, age) => (look.lag_seconds == null ? '–' : seconds(look.lag_seconds + age))],
  ['newest', (look) => look.newest_time?.utc.replace('T', ' ').replace(/(\.0)?Z$/, '') ?? '–'],
  ['scan', (look) => String(look.scan ?? '–')],
  ['field', (look) => String(look.field ?? '–')],
  ['flagged', (look) => percent(look.flagged)],
];

/** Telescope, project, times, band: what a file that does not grow is known by. */
export function facts({ telescope, project, times, band, rows, kind }: Description): HTMLElement {
  const [first, last] = times ?? [NaN, NaN];
  const found: [name: string, value: string][] = [
    ['telescope', telescope], ['project', project],
    ['times', times ? `${day(first)} ${clock(first)} to ${day(first) === day(last) ? '' : `${day(last)} `}${clock(last)} UTC` : ''],
    ['band', band ? `${[...new Set(band)].map((frequency) => short(frequency / 1e6)).join(' to ')} MHz` : ''],
    ['rows', rows === null ? '' : count(rows)], ['kind', kind === 'hdf5' ? 'HDF5' : kind],
  ];
  return el('dl', { class: 'strip', 'aria-label': 'The file' }, ...found.filter(([, value]) => value)
    .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', { 'data-name': name }, value))));
}

export class Strip {
  readonly box = el('dl', { class: 'strip', 'aria-label': 'State of the file' });
  private readonly values: HTMLElement[] = [];
  private look: Look | null = null;
  private at = 0;

  constructor() {
    for (const [name] of FIELDS) {
      const value = el('dd', { 'data-name': name }, '–');
      this.values.push(value);
      this.box.append(el('div', {}, el('dt', {}, name), value));
    }
    setInterval(() => this.draw(), 1000);
  }

  show(look: Look) {
    this.look = look;
    this.at = performance.now();
    this.draw();
  }

  /** Seconds since the newest look. */
  age(): number {
    return this.look ? (performance.now() - this.at) / 1000 : 0;
  }

  private draw() {
    if (!this.look) return;
    const age = this.look.open === false ? 0 : this.age();
    FIELDS.forEach(([, value], index) => {
      const text = value(this.look!, age);
      if (this.values[index]!.textContent !== text) this.values[index]!.textContent = text;
    });
  }
}
