/** A plot of the page: asks for its frames, shows them, with its own switches and downloads. */
import { SCALES, type Scale } from './colours';
import { button, el } from './dom';
import { csv, npy, png, save } from './download';
import { decode, type Frame } from './frame';
import { count } from './format';
import { Panel, type Zoom } from './panel';
import { align, difference, picture, type Look, type Picture } from './picture';
import { Refusal, refusal, words } from './server';
import { SELECTION, type State } from './state';

export interface Kind {
  kind: string;
  name: string;
  /** Parameters of this plot alone: the first value is the server's default. `parameter`, if it is not called `name`. */
  own: { name: string; parameter?: string; label: string; values: [value: string, label: string][] }[];
  /** Has a linear and a logarithmic form. */
  scales: boolean;
  /** What the axes show, where other plots show it as well: these are zoomed together. */
  links?: { x?: Link; y?: Link };
  /** Has lines, which can be those of antennas, fields, … */
  lines?: true;
}

type Link = 'time' | 'frequency' | 'distance';

/** The plots in their order on the page. */
export const KINDS: Kind[] = [
  {
    kind: 'waterfall', name: 'Waterfall', scales: true, links: { x: 'frequency', y: 'time' }, own: [
      { name: 'quantity', label: 'Quantity', values: [['', 'amplitude'], ['phase', 'phase'], ['real', 'real part'], ['imag', 'imaginary part'], ['flagged', 'flagged']] },
      { name: 'statistic', label: 'Statistic', values: [['', 'mean'], ['max', 'maximum']] }],
  },
  {
    kind: 'amp_time', name: 'Amplitude, time', scales: true, links: { x: 'time' }, lines: true, own: [
      { name: 'quantity', label: 'Quantity', values: [['', 'amplitude'], ['real', 'real part'], ['imag', 'imaginary part']] }],
  },
  { kind: 'phase_time', name: 'Phase, time', scales: false, links: { x: 'time' }, lines: true, own: [] },
  {
    kind: 'spectrum', name: 'Spectrum', scales: true, links: { x: 'frequency' }, lines: true, own: [
      { name: 'quantity', label: 'Quantity', values: [['', 'amplitude'], ['phase', 'phase'], ['real', 'real part'], ['imag', 'imaginary part']] }],
  },
  { kind: 'amp_uvdist', name: 'Amplitude, uv distance', scales: true, links: { x: 'distance' }, own: [] },
  { kind: 'phase_uvdist', name: 'Phase, uv distance', scales: true, links: { x: 'distance' }, own: [] },
  { kind: 'uv', name: 'uv coverage', scales: true, own: [{ name: 'unit', label: 'Unit', values: [['', 'metres'], ['klambda', 'kλ']] }] },
  { kind: 'flag_antenna', name: 'Flags by antenna', scales: false, own: [] },
  { kind: 'flag_channel', name: 'Flags by channel', scales: false, links: { x: 'frequency' }, lines: true, own: [] },
  { kind: 'flag_time', name: 'Flags by time', scales: false, links: { x: 'time' }, lines: true, own: [] },
  { kind: 'baselines', name: 'Baselines', scales: true, own: [{ name: 'quantity', label: 'Quantity', values: [['', 'amplitude'], ['flagged', 'flagged']] }] },
  {
    kind: 'xy', name: 'Other axes', scales: true, lines: true, own: [
      {
        name: 'axis', parameter: 'x', label: 'Horizontal axis', values: [['', 'time'], ['elevation', 'elevation'], ['hour_angle', 'hour angle'],
          ['uvdist', 'uv distance'], ['u', 'u'], ['v', 'v'], ['w', 'w'], ['scan', 'scan'], ['field', 'field']],
      },
      { name: 'quantity', label: 'Quantity', values: [['', 'amplitude'], ['phase', 'phase'], ['real', 'real part'], ['imag', 'imaginary part'], ['flagged', 'flagged']] }],
  },
  { kind: 'antennas', name: 'Antennas', scales: false, own: [] },
  { kind: 'image', name: 'Image', scales: true, own: [] },
];

/** What the views share. */
export interface Page {
  state: State;
  file: string;
  antennas: string[];
  /** Plots of the page. */
  kinds: Kind[];
  /** Groups that have a line each, unless the address says which. */
  lines: string;
  /** A plot cannot be shown, for a reason; empty: it can again. */
  fail(view: View, text: string): void;
  /** Announces something to readers who do not see the page. */
  say(text: string): void;
}

/** Frames of one source, as they were asked for last. */
class Feed {
  frame: Frame | null = null;
  private address = '';
  private tag = '';

  constructor(readonly file: string) {}

  /** Whether the frame is another one than before. Throws `Refusal`, `TypeError` without a server, `AbortError`. */
  async load(kind: string, parameters: URLSearchParams, signal: AbortSignal): Promise<boolean> {
    const query = new URLSearchParams(parameters);
    query.set('file', this.file);
    const address = `live/plot/${kind}?${query}`;
    const known = address === this.address && this.frame && this.tag;
    const answer = await fetch(address, { signal, headers: known ? { 'If-None-Match': this.tag } : {} });
    if (answer.status === 304) return false;
    if (!answer.ok) throw await refusal(answer);
    this.frame = decode(await answer.arrayBuffer());
    this.address = address;
    this.tag = answer.headers.get('ETag') ?? '';
    return true;
  }
}

export class View {
  readonly box: HTMLElement;
  private readonly heading = el('h2');
  private readonly note = el('span', { class: 'note' });
  private readonly error = el('p', { class: 'error', role: 'status' });
  private readonly place = el('output', { class: 'place', 'aria-live': 'off' });
  private readonly panels = el('div', { class: 'panels' });
  private readonly keys = el('div', { class: 'keys' });
  private readonly chip: HTMLButtonElement;
  private readonly selects: HTMLSelectElement[] = [];
  private readonly scaleButton: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private readonly enlarge: HTMLButtonElement;
  /** The state of the file that the frame has to show, if it came while a request was under way. */
  private wanted: [revision: number | string, rows: number] | null = null;
  private shown: Panel[] = [];
  private pictures: Picture[] = [];
  private feeds: Feed[] = [];
  private hidden = new Set<string>();
  private running: AbortController | null = null;
  private again = false;
  private waiting = false;
  private visible = false;
  private timer = 0;
  private drawn = 0;
  /** How often the reader asked to go on after reading had stopped at its limit. */
  private more = 0;
  private readonly goOn: HTMLButtonElement;

  constructor(readonly kind: Kind, private readonly page: Page) {
    const { state } = page;
    const name = (own: string) => `${kind.kind}.${own}`;
    const tools = el('div', { class: 'tools' });
    for (const { name: own, label, values } of kind.own) {
      const select = el('select', { 'aria-label': `${label}, ${kind.name}` }, ...values.map(([value, text]) => el('option', { value }, text)));
      select.addEventListener('change', () => state.set({ [name(own)]: select.value }));
      select.dataset.own = own;
      this.selects.push(select);
      tools.append(select);
    }
    this.chip = button('', 'Show all baselines again', () => state.set({ 'waterfall.baseline': '' }));
    this.scaleButton = button('log', 'Logarithmic or linear scale', () => {
      state.set({ [name('scale')]: this.isLog() ? 'linear' : 'log' });
    });
    this.reset = button('Reset', 'Show all of both axes', () => this.setZoom({}));
    this.enlarge = button('Large', 'This plot alone, in the whole window', () => {
      state.set({ large: this.isLarge() ? '' : kind.kind });
      this.enlarge.focus();
    });
    this.goOn = button('Read on', 'Reading has stopped at its limit: read more of the rows', () => {
      this.more += 1;
      this.refresh();
    });
    this.goOn.hidden = true;
    tools.append(this.goOn);
    if (kind.kind === 'waterfall') tools.append(this.chip);
    if (kind.scales) tools.append(this.scaleButton);
    tools.append(this.reset, this.enlarge);
    const download = el('select', { 'aria-label': `Download, ${kind.name}`, title: 'Download' },
      ...[['', 'Save'], ['png', 'PNG'], ['npy', 'npy'], ['csv', 'CSV'], ['safetensors', 'safetensors']].map(([value, text]) => el('option', { value: value! }, text!)));
    download.addEventListener('change', () => {
      const form = download.value;
      download.value = '';
      void this.save(form).catch((reason: unknown) => this.fail(words(reason)));
    });
    tools.append(download);
    this.box = el('section', { class: 'plot', id: kind.kind, 'aria-label': kind.name },
      el('div', { class: 'head' }, this.heading, this.note, tools), this.keys, this.error, this.panels, this.place);
    this.heading.textContent = kind.name;
    this.box.dataset.state = 'loading';
    this.panels.style.minHeight = '280px';
    this.setSources();
    this.controls();
    new IntersectionObserver((entries) => {
      this.visible = entries.some((entry) => entry.isIntersecting);
      if (this.visible && this.waiting) this.refresh();
    }, { rootMargin: '200px' }).observe(this.box);
    this.waiting = true;
  }

  /** The second source of a comparison has changed. */
  setSources() {
    const { state, file } = this.page;
    const other = state.get('with');
    this.feeds = [new Feed(file), ...(other ? [new Feed(other)] : [])];
    const panels = other && this.compare() === 'side' ? 2 : 1;
    for (const panel of this.shown) panel.destroy();
    this.shown = Array.from({ length: panels }, (_, index) => new Panel({
      name: this.kind.name, zoom: () => this.zoom(), setZoom: (zoom) => this.setZoom(zoom), hidden: () => this.hidden, large: () => this.isLarge(),
      baseline: () => state.get('waterfall.baseline') || state.get('baseline') || 'all cross baselines',
      setReadout: (text) => {
        this.place.textContent = text && panels > 1 ? `${this.feeds[index]!.file}: ${text}` : text;
      },
      ...(this.kind.kind === 'baselines' ? { pick: (column: number, row: number) => this.pick(column, row), picked: () => this.picked() } : {}),
    }));
    this.panels.classList.toggle('two', panels > 1);
    this.panels.replaceChildren(...this.shown.map((panel, index) => (panels > 1
      ? el('div', { class: 'side' }, el('h3', {}, this.feeds[index]!.file), panel.box) : panel.box)));
  }

  private compare(): 'side' | 'difference' {
    return this.page.state.get('compare') === 'difference' ? 'difference' : 'side';
  }

  /** Asks for the newest frame when the plot is visible, at once or after the request under way. */
  refresh() {
    if (!this.visible) {
      this.waiting = true;
    } else if (this.running) {
      this.again = true;
    } else {
      clearTimeout(this.timer);
      this.waiting = false;
      void this.run();
    }
  }

  /** The server has this state of the file: asks for a frame of it unless the frame that is here, or under way, is one. */
  follow(revision: number | string, rows: number) {
    this.wanted = [revision, rows];
    if (!this.running) this.catchUp();
  }

  private catchUp() {
    if (!this.wanted) return;
    const [revision, rows] = this.wanted;
    this.wanted = null;
    const plot = this.feeds[0]?.frame?.plot;
    if (plot && (plot.revision !== revision || plot.rows !== rows)) this.refresh();
  }

  /** Values of the state have changed. */
  changed(names: string[]) {
    const { kind } = this.kind;
    if (names.includes('with') || names.includes('compare')) this.setSources();
    const selects = (name: string) => (SELECTION as readonly string[]).includes(name) || name === 'with' || name === 'compare'
      || (name === 'by' && this.kind.lines) || (name === 'plane' && kind === 'image')
      || this.kind.own.some((own) => name === `${kind}.${own.name}`) || (kind === 'waterfall' && name === 'waterfall.baseline');
    this.controls();
    if (names.some(selects)) {
      this.running?.abort();
      this.box.dataset.state = 'loading';
      this.refresh();
    } else if (names.some((name) => name === 'colours' || name.startsWith(`${kind}.`)) || (kind === 'baselines' && names.includes('waterfall.baseline'))) {
      this.draw();
    } else if (names.includes('large')) this.fit();
  }

  /** The window, or the part of it that the plot has, is of another size. */
  fit() {
    for (const panel of this.shown) panel.fit();
  }

  /** The theme has changed. */
  restyle() {
    for (const panel of this.shown) panel.restyle();
  }

  private controls() {
    const { state } = this.page;
    for (const select of this.selects) select.value = state.get(`${this.kind.kind}.${select.dataset.own}`);
    const baseline = state.get('waterfall.baseline');
    this.chip.hidden = !baseline;
    this.chip.textContent = `${baseline} ×`;
    this.scaleButton.setAttribute('aria-pressed', String(this.isLog()));
    const zoom = this.zoom();
    this.reset.hidden = !zoom.x && !zoom.y;
    this.enlarge.textContent = this.isLarge() ? 'All plots' : 'Large';
    this.enlarge.hidden = this.page.kinds.length === 1;
  }

  /** Alone on the page. */
  private isLarge(): boolean {
    return this.page.kinds.length === 1 || this.page.state.get('large') === this.kind.kind;
  }

  private isLog(): boolean {
    const chosen = this.page.state.get(`${this.kind.kind}.scale`);
    if (chosen) return chosen === 'log';
    const plot = this.feeds[0]?.frame?.plot;
    return plot ? (plot.z ?? plot.y).scale === 'log' : false;
  }

  private parameters(): URLSearchParams {
    const { state } = this.page;
    const { kind, own } = this.kind;
    const query = new URLSearchParams();
    if (kind === 'image') return state.get('plane') ? new URLSearchParams({ plane: state.get('plane') }) : query;
    const by = state.get('by') || this.page.lines;
    if (this.kind.lines && by !== 'correlation') query.set('by', by);
    for (const name of SELECTION) {
      const value = state.get(name);
      if (value && !(kind === 'baselines' && name === 'baseline')) query.set(name, value);
    }
    for (const { name, parameter } of own) {
      const value = state.get(`${kind}.${name}`);
      if (value) query.set(parameter ?? name, value);
    }
    if (kind === 'waterfall' && state.get('waterfall.baseline')) query.set('baseline', state.get('waterfall.baseline'));
    if (this.more) query.set('more', String(this.more));
    return query;
  }

  private async run() {
    const running = new AbortController();
    this.running = running;
    const feeds = this.feeds;
    let pause = 0;
    try {
      const parameters = this.parameters();
      const news = await Promise.all(feeds.map((feed) => feed.load(this.kind.kind, parameters, running.signal)));
      if (feeds === this.feeds && (news.some(Boolean) || this.box.dataset.state !== 'ready')) this.draw();
      else this.fail('');
      if (feeds.some((feed) => feed.frame && !feed.frame.plot.complete && !feed.frame.plot.stopped)) pause = 150;
    } catch (reason) {
      if (!running.signal.aborted) {
        const busy = reason instanceof Refusal && reason.status === 503;
        if (!busy) this.fail(words(reason));
        if (busy || reason instanceof TypeError) pause = ((reason as Refusal).retryAfter ?? 2) * 1000;
      }
    }
    this.running = null;
    if (this.again || running.signal.aborted) {
      this.again = false;
      this.refresh();
    } else if (pause) {
      // a frame of only some rows: the server reads on, and a closed file sends no look for it
      this.timer = window.setTimeout(() => this.refresh(), pause);
    } else this.catchUp();
  }

  private fail(text: string) {
    if (text) this.box.dataset.state = 'error';
    else this.tell('');
    this.page.fail(this, text);
  }

  /** Shows a reason; none if the page shows it for several plots. */
  tell(text: string) {
    this.error.textContent = text;
  }

  private draw() {
    const frames = this.feeds.map((feed) => feed.frame);
    if (frames.some((frame) => !frame)) return;
    const { state, antennas } = this.page;
    const chosen = state.get('colours') as Scale;
    const look: Look = {
      scale: state.get(`${this.kind.kind}.scale`) as Look['scale'], colours: SCALES.includes(chosen) ? chosen : 'viridis', hidden: this.hidden, antennas,
    };
    try {
      const isDifference = frames.length > 1 && this.compare() === 'difference';
      this.pictures = isDifference ? [picture(difference(frames[0]!, frames[1]!), look, true)] : frames.map((frame) => picture(frame!, look));
      if (this.pictures.length > 1) align(this.pictures[0]!, this.pictures[1]!);
      this.shown.forEach((panel, index) => panel.show(this.pictures[index]!));
    } catch (reason) {
      this.fail(words(reason));
      return;
    }
    this.fail('');
    const { plot } = this.pictures[0]!;
    this.heading.textContent = plot.title;
    const part = plot.complete ? '' : `${count(plot.rows_used)} of ${count(plot.rows)} rows`;
    this.note.textContent = [plot.note, part, plot.stale ? 'cells were rewritten, being read again' : ''].filter(Boolean).join('; ');
    this.goOn.hidden = !plot.stopped;
    this.legend();
    this.controls();
    this.drawn += 1;
    Object.assign(this.box.dataset, { state: 'ready', revision: plot.revision, rows: plot.rows, used: plot.rows_used, stale: plot.stale, drawn: this.drawn });
  }

  /** Names of the lines, each a switch. */
  private legend() {
    const found = this.pictures[0]!;
    const names = found.kind === 'lines' && found.lines.length > 1 ? found.lines : [];
    const wanted = names.map(({ name }) => `${name} ${this.hidden.has(name)}`).join();
    if (this.keys.dataset.made === wanted) return;
    this.keys.dataset.made = wanted;
    this.keys.replaceChildren(...names.map(({ name, colour }) => {
      const key = button(name, 'Show or hide', () => {
        if (!this.hidden.delete(name)) this.hidden.add(name);
        this.draw();
      });
      key.setAttribute('aria-pressed', String(!this.hidden.has(name)));
      key.style.setProperty('--key', colour);
      return key;
    }));
  }

  private zoom(): Zoom {
    const part = (axis: string): [number, number] | undefined => {
      const text = this.page.state.get(`${this.kind.kind}.${axis}`);
      const ends = text.split('..').map(Number);
      return text && ends.length === 2 && ends.every(Number.isFinite) ? [ends[0]!, ends[1]!] : undefined;
    };
    return { x: part('x'), y: part('y') };
  }

  private setZoom(zoom: Zoom) {
    const text = (part: [number, number] | undefined) => (part ? part.map((value) => Number(value.toPrecision(13))).join('..') : '');
    const { kind, links } = this.kind;
    const values: Record<string, string> = {};
    for (const axis of ['x', 'y'] as const) {
      values[`${kind}.${axis}`] = text(zoom[axis]);
      const link = links?.[axis];
      // the same part of the other plots against time, frequency or distance
      for (const other of link ? this.page.kinds : []) {
        for (const of of ['x', 'y'] as const) if (other.links?.[of] === link) values[`${other.kind}.${of}`] = text(zoom[axis]);
      }
    }
    this.page.state.set(values, true);
  }

  private names(): string[] {
    const plot = this.pictures[0]?.plot;
    return plot?.x.names ?? this.page.antennas;
  }

  /** Chooses a baseline for the waterfall. */
  private pick(column: number, row: number) {
    const names = this.names();
    const pair = [Math.min(column, row), Math.max(column, row)].map((index) => names[index]);
    if (pair[0] === undefined || pair[1] === undefined) return;
    this.page.state.set({ 'waterfall.baseline': `${pair[0]}-${pair[1]}` }, true);
    this.page.say(`Waterfall of the baseline ${pair[0]}-${pair[1]}`);
  }

  private picked(): [number, number] | null {
    const text = this.page.state.get('waterfall.baseline');
    const names = this.names();
    // names may have hyphens in them
    for (let at = text.indexOf('-'); at >= 0; at = text.indexOf('-', at + 1)) {
      const pair: [number, number] = [names.indexOf(text.slice(0, at)), names.indexOf(text.slice(at + 1))];
      if (pair[0] >= 0 && pair[1] >= 0) return pair;
    }
    return null;
  }

  private async save(form: string) {
    const found = this.pictures[0];
    const frame = this.feeds[0]?.frame;
    if (!found || !frame) return;
    const name = `${this.page.file.replace(/^.*\//, '').replace(/\.[^.]*$/, '')}-${this.kind.kind}`;
    const shown = found.isDifference && this.feeds[1]?.frame ? difference(frame, this.feeds[1].frame) : frame;
    if (form === 'png') {
      const canvases = this.shown.map((panel) => panel.canvas()).filter((canvas) => canvas !== null);
      const made = await png(canvases, [this.page.file, found.plot.title, found.plot.note].filter(Boolean).join(', '), this.pictures);
      if (made) save(`${name}.png`, [made], 'image/png');
    } else if (form === 'npy') {
      const numbers = shown.arrays.raster ?? shown.arrays.y;
      if (numbers) save(`${name}.npy`, npy(numbers), 'application/octet-stream');
    } else if (form === 'csv') save(`${name}.csv`, [csv(shown)], 'text/csv');
    else if (form === 'safetensors') save(`${name}.safetensors`, [frame.buffer], 'application/octet-stream');
  }
}
