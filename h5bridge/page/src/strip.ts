/** The strip of numbers about a growing file, from its events. */
import { el } from './dom';
import { bytes, count, percent, seconds } from './format';
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
