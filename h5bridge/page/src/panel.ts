/** One plot on the screen: axes and lines by uPlot, rasters on its canvas. */
import 'uplot/dist/uPlot.min.css';
import uPlot from 'uplot';
import { css, paint, type Range } from './colours';
import type { Numbers } from './frame';
import { cellAt, describe, readout, type Lines, type Picture, type Raster } from './picture';
import { evenRuns, type Mapping } from './scale';
import { colour } from './theme';

/** What is shown of an axis, in values; none: all. */
export interface Zoom {
  x?: [number, number];
  y?: [number, number];
}

export interface Host {
  /** Of the plot, for readers who do not see it, until its words come. */
  name: string;
  /** The plot is alone on the page. */
  large(): boolean;
  /** Baselines that the plot shows, in words. */
  baseline(): string;
  zoom(): Zoom;
  /** The reader chose another part. */
  setZoom(zoom: Zoom): void;
  /** Text for the place under the pointer. */
  setReadout(text: string): void;
  /** The reader chose a cell of a raster. */
  pick?(column: number, row: number): void;
  /** The cell that is chosen. */
  picked?(): [number, number] | null;
  hidden(): Set<string>;
}

const HEIGHT = 280;
/** Room below a plot which is alone in the window: for the readout. */
const BELOW = 36;
/** Room for the marks of the axes, without their labels, for the labels, and for the scale of colours with its labels: at least this. */
const SIDES = { left: 58, bottom: 28, label: 18, top: 8, bar: 58, font: 12 };
/** The same on a narrow screen, with smaller letters. */
const NARROW = { ...SIDES, left: 44, label: 15, bar: 50, font: 11 };
const NARROW_WIDTH = 440;
/** Letters of the scale of colours. */
const BAR_FONT = 11;

const letters = (size: number) => `${size}px system-ui, "DejaVu Sans", sans-serif`;
const pen = document.createElement('canvas').getContext('2d')!;

/** Width of the widest label. */
function widest(labels: string[], size: number): number {
  pen.font = letters(size);
  return Math.max(0, ...labels.map((label) => pen.measureText(label).width));
}

/** Positions that are shown of an axis. */
function shown(mapping: Mapping, part: [number, number] | undefined): [number, number] {
  const [first, last] = mapping.ends;
  if (!part) return [first, last];
  const ends = [mapping.to(part[0]), mapping.to(part[1])].filter(Number.isFinite).sort((a, b) => a - b);
  const [low, high] = ends;
  return low !== undefined && high !== undefined && high > low && high > first && low < last ? [low, high] : [first, last];
}

/** Whether both axes are lengths, so that they have one scale. */
function isMap({ plot }: Picture): boolean {
  return ['uv', 'antennas', 'image'].includes(plot.kind) && plot.x.unit === plot.y.unit;
}

/** Values for uPlot: positions of the mapping, and null for gaps. */
function column(values: Numbers, mapping: Mapping): (number | null)[] {
  return Array.from(values, (value) => {
    const position = mapping.to(value);
    return Number.isFinite(position) ? position : null;
  });
}

/** Smallest size of a point in a map, by the part of its cells that have points: few points have to be seen singly. */
const POINTS: [part: number, size: number][] = [[0.002, 5], [0.1, 3]];
/** Lines of at most this many points also show each point. */
const DOTS = 400;

const position = (value: number, range: Range) => (range.log ? Math.log(value) : value);

export class Panel {
  readonly box = document.createElement('div');
  private plot: uPlot | null = null;
  private made = '';
  private picture: Picture | null = null;
  private readonly layer = new OffscreenCanvas(1, 1);
  private readonly watcher: ResizeObserver;

  constructor(private readonly host: Host) {
    this.box.className = 'panel';
    this.box.tabIndex = 0;
    this.box.setAttribute('role', 'img');
    this.box.setAttribute('aria-label', host.name);
    this.box.addEventListener('keydown', this.key);
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.box);
  }

  destroy() {
    this.watcher.disconnect();
    this.plot?.destroy();
    this.box.remove();
  }

  /** Colours have changed: makes the plot again. */
  restyle() {
    this.made = '';
    if (this.picture) this.show(this.picture);
  }

  show(picture: Picture) {
    this.picture = picture;
    this.box.setAttribute('aria-label', describe(picture));
    if (picture.kind === 'raster') paint(this.layer, picture.width, picture.height, picture.values, picture.range, picture.scale, picture.flagged);
    const data = picture.kind === 'raster' ? [[...picture.x.ends], [null, null]] : this.columns(picture);
    const names = picture.kind === 'raster' ? '' : picture.lines.map((line) => line.name).join();
    const wanted = JSON.stringify([this.sides === NARROW, picture.kind, names, [...this.host.hidden()], picture.kind === 'lines' && picture.style, picture.xTitle, picture.yTitle, picture.plot.title]);
    if (this.plot && wanted === this.made) {
      this.plot.setData(data as uPlot.AlignedData);
      return;
    }
    this.plot?.destroy();
    this.made = wanted;
    this.plot = new uPlot(this.options(picture), data as uPlot.AlignedData, this.box);
  }

  /** Takes the zoom over from the host. */
  redraw() {
    if (this.plot && this.picture) this.plot.setData(this.plot.data);
  }

  /** The plot as it is drawn, in device pixels. */
  canvas(): HTMLCanvasElement | null {
    return this.plot?.ctx.canvas ?? null;
  }

  private get sides(): typeof SIDES {
    return this.box.clientWidth < NARROW_WIDTH ? NARROW : SIDES;
  }

  private get height(): number {
    if (!this.host.large()) return HEIGHT;
    return Math.max(HEIGHT, Math.floor(innerHeight - BELOW - (this.box.getBoundingClientRect().top + scrollY)));
  }

  /** Takes the size of the box. */
  fit() {
    const [width, height] = [this.box.clientWidth, this.height];
    if (this.plot && this.picture && width > 100 && (width !== this.plot.width || height !== this.plot.height)) {
      this.plot.setSize({ width, height });
      this.show(this.picture);
    }
  }

  /** Positions at the ends of an axis. */
  private ends(u: uPlot, which: 'x' | 'y'): [number, number] {
    const zoom = this.host.zoom();
    const picture = this.picture!;
    const [low, high] = shown(picture[which], zoom[which]);
    if (!isMap(picture) || zoom.x || zoom.y) return [low, high];
    // both axes have one scale, so that an ellipse is one
    const { left, label, top, bottom } = this.sides;
    const width = u.width - left - label - this.barRoom(picture) - 14;
    const height = u.height - top - bottom - label;
    const span = ({ ends }: Mapping) => ends[1] - ends[0];
    const each = Math.max(span(picture.x) / width, span(picture.y) / height);
    const half = (each * (which === 'x' ? width : height)) / 2;
    return [(low + high) / 2 - half, (low + high) / 2 + half];
  }

  private columns({ values, lines, starts, x, y }: Lines) {
    const out: (number | null)[][] = [column(values, x), ...lines.map((line) => column(line.y, y))];
    if (!starts.length) return out;
    // a point without a value before each new beginning, so that no line crosses to it
    return out.map((all, index) => {
      const made: (number | null)[] = [];
      let from = 0;
      for (const at of starts) {
        made.push(...all.slice(from, at), index === 0 ? (all[at - 1]! + all[at]!) / 2 : null);
        from = at;
      }
      return [...made, ...all.slice(from)];
    });
  }

  private options(picture: Picture): uPlot.Options {
    const text = colour('--faint');
    const grid = { show: picture.kind === 'lines', stroke: colour('--line'), width: 1 };
    const { sides } = this;
    const font = letters(sides.font);
    const marks = (which: 'x' | 'y') => (u: uPlot, low: number, high: number) => {
      const size = (which === 'x' ? u.bbox.width : u.bbox.height) / devicePixelRatio || 400;
      return this.picture![which].ticks(low, high, Math.max(2, Math.floor(size / (which === 'x' ? 64 : 34))));
    };
    const axis = (which: 'x' | 'y', label: string, size: uPlot.Axis.Size): uPlot.Axis => ({
      label, labelSize: sides.label, labelFont: font, font, size, stroke: text, grid, ticks: { ...grid, show: true, size: 5 }, space: 1,
      splits: (u, _, low, high) => marks(which)(u, low, high).map((tick) => tick.position),
      values: (u, splits) => {
        const scale = u.scales[which]!;
        const labels = new Map(marks(which)(u, scale.min!, scale.max!).map((tick) => [tick.position, tick.label]));
        return splits.map((position) => labels.get(position) ?? '');
      },
    });
    const series: uPlot.Series[] = [{}];
    if (picture.kind === 'raster') series.push({ show: true, points: { show: false } });
    else {
      for (const line of picture.lines) {
        const show = !this.host.hidden().has(line.name);
        const bars = picture.style === 'bars';
        const points = picture.style === 'points';
        const few = picture.values.length <= DOTS;
        series.push({
          label: line.name, show, stroke: line.colour, width: 1.5, fill: bars ? line.colour : undefined,
          paths: bars ? uPlot.paths.bars!({ size: [0.8] }) : points ? () => null : undefined,
          // uPlot draws points without neighbours in any case
          points: { show: !bars && (points || few), size: picture.names ? 6 : few ? 4 : 3, space: 0, fill: line.colour },
        });
      }
    }
    return {
      width: Math.max(200, this.box.clientWidth), height: this.height, legend: { show: false }, series,
      padding: [sides.top, () => (this.picture?.kind === 'raster' ? this.barRoom(this.picture) + 14 : 14), 0, 0],
      cursor: {
        drag: { x: true, y: true, setScale: false, uni: 12 }, points: { show: false },
        bind: { dblclick: () => () => {
          this.host.setZoom({});
          return null;
        } },
      },
      scales: {
        x: { time: false, range: (u) => this.ends(u, 'x') },
        y: { range: (u) => this.ends(u, 'y') },
      },
      axes: [axis('x', picture.xTitle, sides.bottom), axis('y', picture.yTitle, (_, labels) => (
        isMap(picture) ? sides.left : Math.max(sides.left, widest(labels ?? [], sides.font) + 14)))],
      hooks: {
        drawAxes: [(u) => {
          if (this.picture?.kind === 'raster') this.raster(u, this.picture);
        }],
        draw: [(u) => {
          if (this.picture?.kind === 'raster') {
            this.bar(u, this.picture);
            this.beam(u, this.picture);
          }
          if (this.picture?.kind === 'lines' && this.picture.names) this.names(u, this.picture.names);
        }],
        setSelect: [(u) => this.select(u)],
        setCursor: [(u) => {
          const { left = -1, top = -1 } = u.cursor;
          this.host.setReadout(left < 0 || !this.picture ? '' : readout(this.picture, u.posToVal(left, 'x'), u.posToVal(top, 'y'), this.host.baseline()));
        }],
        ready: [(u) => this.clicks(u)],
      },
    };
  }

  private raster(u: uPlot, picture: Raster) {
    const { ctx, bbox: { left, top, width, height } } = u;
    const [x0, x1] = picture.x.ends.map((end) => u.valToPos(end, 'x', true)) as [number, number];
    const [y0, y1] = picture.y.ends.map((end) => u.valToPos(end, 'y', true)) as [number, number];
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    // several cells in a pixel are averaged; larger cells keep their edges
    ctx.imageSmoothingEnabled = Math.abs(x1 - x0) < picture.width || Math.abs(y1 - y0) < picture.height;
    ctx.imageSmoothingQuality = 'medium';
    if (!this.points(ctx, picture, [x0, x1, y0, y1])) {
      // rows of one height at a time: gaps in time are as long as they were
      const runs: [number, number][] = picture.plot.y.scale === 'time' ? evenRuns(picture.yEdges) : [[0, picture.height]];
      for (const [first, last] of runs) {
        const whole = runs.length === 1;
        const [bottom, top] = whole ? [y0, y1] : [first, last].map((row) => u.valToPos(picture.y.to(picture.yEdges[row]!), 'y', true)) as [number, number];
        ctx.drawImage(this.layer, 0, picture.height - last, picture.width, last - first, x0, top, x1 - x0, bottom - top);
      }
    }
    const picked = this.host.picked?.();
    if (picked) {
      const w = (x1 - x0) / picture.width;
      const h = (y0 - y1) / picture.height;
      ctx.lineWidth = 3 * devicePixelRatio;
      ctx.strokeStyle = colour('--alarm');
      ctx.strokeRect(x0 + picked[0] * w, y0 - (picked[1] + 1) * h, w, h);
    }
    ctx.restore();
  }

  /** Draws the cells of a map singly, none smaller than it has to be to be seen; false if so many have points that they show a density. */
  private points(ctx: CanvasRenderingContext2D, { points, width, height, values, range, scale }: Raster, [x0, x1, y0, y1]: [number, number, number, number]): boolean {
    if (!points) return false;
    const [across, up] = [(x1 - x0) / width, (y0 - y1) / height];
    const places = new Set(points.map((at) => Math.floor((at % width) * Math.min(1, across)) + 65536 * Math.floor(Math.floor(at / width) * Math.min(1, up))));
    const filled = places.size / (width * Math.min(1, across) * height * Math.min(1, up));
    const size = (POINTS.find(([part]) => filled < part)?.[1] ?? 0) * devicePixelRatio;
    if (!size) return false;
    const [w, h] = [Math.max(across, size), Math.max(up, size)];
    const at = (value: number) => (range.high > range.low ? (position(value, range) - position(range.low, range)) / (position(range.high, range) - position(range.low, range)) : 0);
    for (const cell of points) {
      ctx.fillStyle = css(scale, at(values[cell]!));
      ctx.fillRect(x0 + ((cell % width) + 0.5) * across - w / 2, y0 - (Math.floor(cell / width) + 0.5) * up - h / 2, w, h);
    }
    return true;
  }

  /** Names beside the points of the first line, each where it covers neither a point nor another name, and none where it would. */
  private names(u: uPlot, names: string[]) {
    const { ctx, bbox: { left, top, width, height } } = u;
    const size = 11 * devicePixelRatio;
    const taken: [left: number, right: number, y: number][] = [];
    const places = names.map((_, i): [number, number] => {
      const [px, py] = [u.data[0][i], u.data[1]?.[i]];
      return px == null || py == null ? [NaN, NaN] : [u.valToPos(px, 'x', true), u.valToPos(py, 'y', true)];
    });
    const radius = 3 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.fillStyle = colour('--faint');
    ctx.font = letters(size);
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    names.forEach((name, i) => {
      const [px, py] = places[i]!;
      const across = ctx.measureText(name).width;
      const sides = [1, -1].flatMap((up) => [px + size * 0.6, px - size * 0.6 - across].map((x): [number, number] => [x, py - up * size * 0.6]));
      const free = sides.find(([x, y]) => x >= left && x + across <= left + width && y >= top && y <= top + height
        && !taken.some(([from, to, other]) => x < to && from < x + across && Math.abs(y - other) < size)
        && !places.some(([ox, oy]) => ox + radius > x && ox - radius < x + across && Math.abs(oy - y) < size / 2 + radius - 1));
      if (!free) return;
      taken.push([free[0], free[0] + across, free[1]]);
      ctx.fillText(name, ...free);
    });
    ctx.restore();
  }

  /** Ends of the scale of colours, and its marks. */
  private barMarks({ range, z }: Raster): { low: number; high: number; marks: { position: number; label: string }[] } {
    const [low, high] = [range.log ? Math.log10(range.low) : range.low, range.log ? Math.log10(range.high) : range.high];
    const { top, bottom, label } = this.sides;
    return { low, high, marks: high > low ? z.ticks(low, high, Math.floor((this.height - top - bottom - label) / 30)) : [] };
  }

  /** Room for the scale of colours with its labels. */
  private barRoom(picture: Picture): number {
    const { bar } = this.sides;
    return picture.kind === 'raster' ? Math.max(bar, widest(this.barMarks(picture).marks.map(({ label }) => label), BAR_FONT) + 24) : bar;
  }

  /** The scale of colours, at the right. */
  private bar(u: uPlot, picture: Raster) {
    const { scale, zTitle } = picture;
    const { ctx, bbox: { left, top, width, height } } = u;
    const ratio = devicePixelRatio;
    const x = left + width + 8 * ratio;
    const across = 10 * ratio;
    ctx.save();
    const gradient = ctx.createLinearGradient(0, top + height, 0, top);
    for (let i = 0; i <= 32; i += 1) gradient.addColorStop(i / 32, css(scale, i / 32));
    ctx.fillStyle = gradient;
    ctx.fillRect(x, top, across, height);
    ctx.fillStyle = colour('--faint');
    ctx.font = letters(BAR_FONT * ratio);
    ctx.textAlign = 'left';
    ctx.textBaseline = 'middle';
    const { low, high, marks } = this.barMarks(picture);
    for (const mark of marks) {
      const y = top + height * (1 - (mark.position - low) / (high - low));
      ctx.fillRect(x + across, y - ratio / 2, 3 * ratio, ratio);
      ctx.fillText(mark.label, x + across + 5 * ratio, y);
    }
    ctx.translate(x + across + (this.barRoom(picture) - 12) * ratio, top + height / 2);
    ctx.rotate(Math.PI / 2);
    ctx.textAlign = 'center';
    ctx.fillText(zTitle, 0, 0);
    ctx.restore();
  }

  /** The beam of an image, in the lower left corner: its angle is from north, upwards, to east, to the left. */
  private beam(u: uPlot, { beam }: Raster) {
    if (!beam) return;
    const { ctx, bbox: { left, top, width, height } } = u;
    const span = ({ min, max }: uPlot.Scale) => max! - min!;
    const [across, up] = [width / span(u.scales.x!), height / span(u.scales.y!)];
    const [major, minor] = [beam[0]! * up, beam[1]! * across];
    if (!(major < height / 2) || !(minor < width / 2)) return;
    ctx.save();
    ctx.beginPath();
    ctx.ellipse(left + major / 2 + 8 * devicePixelRatio, top + height - major / 2 - 8 * devicePixelRatio, minor / 2, major / 2, (-beam[2]! * Math.PI) / 180, 0, 2 * Math.PI);
    ctx.fillStyle = 'rgb(255 255 255 / 0.8)';
    ctx.strokeStyle = '#000';
    ctx.lineWidth = devicePixelRatio;
    ctx.fill();
    ctx.stroke();
    ctx.restore();
  }

  private select(u: uPlot) {
    const { left, top, width, height } = u.select;
    if (!this.picture || (width < 4 && height < 4)) return;
    const zoom: Zoom = { ...this.host.zoom() };
    const part = (mapping: Mapping, scale: 'x' | 'y', from: number, to: number): [number, number] =>
      [mapping.from(u.posToVal(from, scale)), mapping.from(u.posToVal(to, scale))];
    const full = u.over.getBoundingClientRect();
    if (width >= 4 && width < full.width - 1) zoom.x = part(this.picture.x, 'x', left, left + width);
    if (height >= 4 && height < full.height - 1) zoom.y = part(this.picture.y, 'y', top + height, top);
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.host.setZoom(zoom);
  }

  private clicks(u: uPlot) {
    let down = [0, 0];
    u.over.addEventListener('mousedown', (event) => {
      down = [event.clientX, event.clientY];
    });
    u.over.addEventListener('click', (event) => {
      if (Math.hypot(event.clientX - down[0]!, event.clientY - down[1]!) > 3 || this.picture?.kind !== 'raster') return;
      const at = cellAt(this.picture, u.posToVal(event.offsetX, 'x'), u.posToVal(event.offsetY, 'y'));
      if (at) this.host.pick?.(...at);
    });
  }

  /** Keys: + and - zoom, arrows move, 0 or Escape shows all; where cells are chosen, arrows choose the next one. */
  private readonly key = (event: KeyboardEvent) => {
    const { picture } = this;
    if (!picture || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (step && this.host.pick && picture.kind === 'raster') {
      const [column, row] = this.host.picked?.() ?? [-1, 0];
      this.host.pick(Math.max(0, Math.min(picture.width - 1, column + step[0]!)), Math.max(0, Math.min(picture.height - 1, row + step[1]!)));
      event.preventDefault();
      return;
    }
    const zoom = this.host.zoom();
    const change = (which: 'x' | 'y', grow: number, move: number): [number, number] => {
      const mapping = picture[which];
      const [low, high] = shown(mapping, zoom[which]);
      const half = ((high - low) / 2) * grow;
      const [first, last] = mapping.ends;
      const size = Math.min(half * 2, last - first);
      const start = Math.max(first, Math.min(last - size, (low + high) / 2 + move * (high - low) - size / 2));
      return [mapping.from(start), mapping.from(start + size)];
    };
    if (step) this.host.setZoom({ x: change('x', 1, step[0]! / 4), y: change('y', 1, step[1]! / 4) });
    else if (event.key === '+' || event.key === '=') this.host.setZoom({ x: change('x', 0.5, 0), y: change('y', 0.5, 0) });
    else if (event.key === '-') this.host.setZoom({ x: change('x', 2, 0), y: change('y', 2, 0) });
    else if (event.key === '0' || event.key === 'Escape') this.host.setZoom({});
    else return;
    event.preventDefault();
  };
}
