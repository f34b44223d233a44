/** What a panel draws: a frame, or the difference of two, with its axes and ranges made out. */
import { LINES, limits, type Range, type Scale } from './colours';
import { row, tensor, type Axis, type Frame, type Numbers, type Plot, type Tensor } from './frame';
import { short } from './format';
import { below, cell, ofEdges, ofRange, title, unitOf, type Mapping } from './scale';

/** Choices of the reader that decide how a frame looks. */
export interface Look {
  /** Empty: as the frame says. */
  scale: '' | 'linear' | 'log';
  colours: Scale;
  /** Series that are not drawn. */
  hidden: Set<string>;
  antennas: string[];
}

interface Common {
  plot: Plot;
  x: Mapping;
  y: Mapping;
  xTitle: string;
  yTitle: string;
  isDifference: boolean;
}

export interface Raster extends Common {
  kind: 'raster';
  width: number;
  height: number;
  values: Numbers;
  xEdges: Numbers;
  yEdges: Numbers;
  range: Range;
  scale: Scale;
  z: Mapping;
  zTitle: string;
  /** 1 for cells all of whose data are flagged. */
  flagged: Numbers | null;
  /** Major and minor axis of the beam, in the unit of the axes, and its angle in degrees. */
  beam: Numbers | null;
  /** Cells with points in ascending order of their number, if the raster counts points: they are few, or small, and have to be seen. */
  points: number[] | null;
}

export interface Line {
  name: string;
  colour: string;
  y: Numbers;
}

export interface Lines extends Common {
  kind: 'lines';
  style: 'line' | 'points' | 'bars';
  values: Numbers;
  lines: Line[];
  /** Places at which the lines begin anew: after a gap, or in another field or scan. */
  starts: number[];
  /** The name of each value, if the values are places. */
  names: string[] | null;
}

export type Picture = Raster | Lines;

const isAngle = (axis: Axis) => axis.label.startsWith('phase');

/** Limits of angles, or null. */
function turn(axis: Axis): [number, number] | null {
  if (!isAngle(axis)) return null;
  return axis.unit.startsWith('deg') ? [-180, 180] : [-Math.PI, Math.PI];
}

const namesOf = (axis: Axis, look: Look) => axis.names ?? (axis.scale === 'category' ? look.antennas : null);

function raster(frame: Frame, look: Look, isDifference: boolean): Raster {
  const { plot } = frame;
  const { shape: [height = 0, width = 0], data } = tensor(frame, 'raster');
  const xEdges = tensor(frame, 'x').data;
  const yEdges = tensor(frame, 'y').data;
  if (xEdges.length !== width + 1 || yEdges.length !== height + 1) throw new Error('the edges do not belong to the raster');
  if (!width || !height) throw new Error(plot.note ?? 'nothing selected');
  const zAxis: Axis = plot.z ?? { label: 'value', unit: '', scale: 'linear' };
  let log = !isDifference && !isAngle(zAxis) && (look.scale || zAxis.scale) === 'log';
  let found = isDifference || isAngle(zAxis) ? turn(zAxis) : null;
  if (!found && plot.z && plot.z.low != null && plot.z.high != null && !(log && plot.z.low <= 0)) found = [plot.z.low, plot.z.high];
  found ??= limits(data, log);
  if (!found) {
    found = [0, 1];
    log = false;
  }
  if (isDifference && !isAngle(zAxis)) {
    const most = Math.max(Math.abs(found[0]), Math.abs(found[1])) || 1;
    found = [-most, most];
  }
  const range = { low: found[0], high: found[1], log };
  const [x, y] = [ofEdges(plot.x, xEdges, namesOf(plot.x, look)), ofEdges(plot.y, yEdges, namesOf(plot.y, look))];
  const z = ofRange({ ...zAxis, scale: 'linear' }, range.low, range.high, log, null);
  return {
    kind: 'raster', plot, isDifference, width, height, values: data, xEdges, yEdges, range, x, y, z,
    xTitle: title(plot.x, xEdges, x), yTitle: title(plot.y, yEdges, y), zTitle: title({ ...zAxis, scale: 'linear' }, [], z),
    scale: isDifference ? 'difference' : isAngle(zAxis) ? 'twilight' : look.colours,
    beam: frame.arrays.beam?.data ?? null,
    points: pointsOf(data), flagged: isDifference ? null : frame.arrays.flagged?.data ?? null,
  };
}

/** Cells of a map of points that have some, those with most of them last; null for other rasters. */
function pointsOf(data: Numbers): number[] | null {
  if (!(data instanceof Uint32Array)) return null;
  const found: number[] = [];
  data.forEach((value, at) => {
    if (value) found.push(at);
  });
  return found.sort((a, b) => data[a]! - data[b]!);
}

/** Phases within this many degrees are equal. */
const LEAST_DEGREES = 1e-3;
/** Part of the values that rounding to 32 bits and sums may change. */
const NOISE = 1e-6;

/** Ends of the vertical axis of lines between two values. */
function around(axis: Axis, low: number, high: number, log: boolean): [number, number] {
  const span = high - low;
  if (log) return [low / 1.1, high * 1.1];
  if (axis.unit === '%') return [0, Math.min(100, Math.max(1, high * 1.05))];
  if (axis.unit.startsWith('deg') && span > 180) return [-190, 190];
  if (axis.unit.startsWith('deg') && span < LEAST_DEGREES) return [low - 1, high + 1];
  if (span > NOISE * Math.max(Math.abs(low), Math.abs(high))) return [low - span * 0.05, high + span * 0.05];
  return [low - 0.5, high + 0.5];
}

/** Places at which all lines begin anew although both neighbours have values. */
function startsOf(frame: Frame, y: Tensor): number[] {
  const { segment } = frame.arrays;
  const [lines = 0, n = 0] = y.shape;
  if (!segment) return [];
  const begins = (line: number, at: number) => segment.data[line * n + at] !== segment.data[line * n + at - 1];
  return Array.from({ length: Math.max(0, n - 1) }, (_, i) => i + 1)
    .filter((at) => Array.from({ length: lines }, (_, line) => begins(line, at)).every(Boolean));
}

/** Smallest and largest finite value, of those above 0 only if `log`; null without one. */
function extent(all: (Numbers | null)[], log: boolean): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const values of all) {
    for (const value of values ?? []) {
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

/** Places with names: each line of the frame has a value in a column of its own. Both axes have one scale. */
function antennas(frame: Frame): Lines {
  const { plot } = frame;
  const x = tensor(frame, 'x').data;
  const { data } = tensor(frame, 'y');
  if (!x.length) throw new Error(plot.note ?? 'nothing selected');
  const order = [...x.keys()].sort((a, b) => x[a]! - x[b]!);
  const values = Float64Array.from(order, (at) => x[at]!);
  const y = Float64Array.from(order, (at) => data[at * x.length + at]!);
  const [west, east] = extent([values], false) ?? [0, 0];
  const [south, north] = extent([y], false) ?? [0, 0];
  const half = Math.max(east - west, north - south) * 0.55 || 1;
  const square = (axis: Axis, low: number, high: number) => ofRange(axis, (low + high) / 2 - half, (low + high) / 2 + half, false, null);
  const [across, up] = [square(plot.x, west, east), square(plot.y, south, north)];
  return {
    kind: 'lines', plot, isDifference: false, values, style: 'points', names: order.map((at) => plot.series?.[at] ?? String(at)),
    lines: [{ name: plot.title, colour: LINES[0]!, y }], starts: [],
    x: across, y: up, xTitle: title(plot.x, [], across), yTitle: title(plot.y, [], up),
  };
}

function lines(frame: Frame, look: Look, isDifference: boolean): Lines {
  const { plot } = frame;
  if (plot.kind === 'antennas') return antennas(frame);
  const values = tensor(frame, 'x').data;
  const y = tensor(frame, 'y');
  const names = plot.series ?? Array.from({ length: y.shape[0] ?? 0 }, (_, i) => (i ? String(i) : plot.y.label));
  if (!values.length) throw new Error(plot.note ?? 'nothing selected');
  const all = names.map((name, i): Line => ({
    name, colour: LINES[i % LINES.length]!, y: row(y, i),
  }));
  const log = !isDifference && !isAngle(plot.y) && (look.scale || plot.y.scale) === 'log';
  const shown = all.filter(({ name }) => !look.hidden.has(name));
  const [from, to] = around(plot.y, ...extent(shown.map((line) => line.y), log) ?? [0, 1], log);
  const bars = plot.x.scale === 'category';
  const [first = 0, last = 1] = extent([values], false) ?? [];
  const margin = bars ? 0.6 : first === last ? 0.5 : 0;
  const across = ofRange(plot.x, first - margin, last + margin, plot.x.scale === 'log', namesOf(plot.x, look));
  const up = ofRange(plot.y, from, to, log, null);
  return {
    kind: 'lines', plot, isDifference, values, lines: all, starts: startsOf(frame, y), names: null, style: bars ? 'bars' : plot.kind === 'xy' || isAngle(plot.y) ? 'points' : 'line',
    x: across, y: up, xTitle: title(plot.x, [first, last], across), yTitle: title(plot.y, [], up),
  };
}

/** Makes a picture of a frame. Throws an `Error` in words if the frame shows nothing. */
export function picture(frame: Frame, look: Look, isDifference = false): Picture {
  return frame.arrays.raster ? raster(frame, look, isDifference) : lines(frame, look, isDifference);
}

/** Gives two pictures the same ranges of values. */
export function align(a: Picture, b: Picture) {
  if (a.kind === 'raster' && b.kind === 'raster') {
    const log = a.range.log && b.range.log;
    const range = { low: Math.min(a.range.low, b.range.low), high: Math.max(a.range.high, b.range.high), log };
    a.range = b.range = range;
    const axis: Axis = { ...(a.plot.z ?? { label: 'value', unit: '' }), scale: 'linear' };
    a.z = b.z = ofRange(axis, range.low, range.high, log, null);
    a.zTitle = b.zTitle = title(axis, [], a.z);
  } else if (a.kind === 'lines' && b.kind === 'lines') {
    const low = Math.min(a.y.from(a.y.ends[0]), b.y.from(b.y.ends[0]));
    const high = Math.max(a.y.from(a.y.ends[1]), b.y.from(b.y.ends[1]));
    a.y = b.y = ofRange(a.plot.y, low, high, a.y.to(100) === 2, null);
    a.yTitle = b.yTitle = title(a.plot.y, [], a.y);
  }
}

/** For each place of `a` the one of `b` that lies there, or -1: centres within cells, points within half a step. */
function places(a: Numbers, b: Numbers, edges: boolean): Int32Array {
  if (edges) return Int32Array.from({ length: a.length - 1 }, (_, i) => cell(b, (a[i]! + a[i + 1]!) / 2));
  const step = b.length > 1 ? Math.abs(b[b.length - 1]! - b[0]!) / (b.length - 1) : Infinity;
  return Int32Array.from(a, (value) => {
    const at = Math.max(0, below(b, value));
    const near = at + 1 < b.length && Math.abs(b[at + 1]! - value) < Math.abs(b[at]! - value) ? at + 1 : at;
    return Math.abs(b[near]! - value) <= step / 2 || b.length === 1 ? near : -1;
  });
}

/** An angle between minus and plus half a turn. */
function wrapped(value: number, half: number): number {
  return value - Math.round(value / (2 * half)) * 2 * half;
}

/** The first frame minus the second, on the places of the first; NaN where the second has none. */
export function difference(a: Frame, b: Frame): Frame {
  const isRaster = !!a.arrays.raster;
  if (a.plot.kind === 'antennas') throw new Error('places of antennas have no difference');
  if (isRaster !== !!b.arrays.raster) throw new Error('the two sources give different kinds of plots');
  const axis = isRaster ? a.plot.z : a.plot.y;
  const half = axis ? turn(axis)?.[1] : undefined;
  const minus = (one: number, other: number) => (half === undefined ? one - other : wrapped(one - other, half));
  const columns = places(tensor(a, 'x').data, tensor(b, 'x').data, isRaster);
  const out = (shape: number[], value: (y: number, x: number) => number): Tensor => {
    const data = new Float32Array(shape[0]! * shape[1]!);
    for (let y = 0, i = 0; y < shape[0]!; y += 1) for (let x = 0; x < shape[1]!; x += 1, i += 1) data[i] = value(y, x);
    return { shape, data };
  };
  const name = isRaster ? 'raster' : 'y';
  const one = tensor(a, name);
  const other = tensor(b, name);
  const width = one.shape[1]!;
  const otherWidth = other.shape[1]!;
  const series = a.plot.series?.map((label) => b.plot.series?.indexOf(label) ?? -1);
  const rows = isRaster ? places(tensor(a, 'y').data, tensor(b, 'y').data, true) : Int32Array.from(series ?? one.shape.slice(0, 1).flatMap((n) => [...Array(n).keys()]));
  const made = out(one.shape, (y, x) => {
    const there = rows[y]! < 0 || columns[x]! < 0 ? NaN : other.data[rows[y]! * otherWidth + columns[x]!]!;
    return minus(one.data[y * width + x]!, there);
  });
  const plot: Plot = {
    ...a.plot, title: `${a.plot.title}, difference`, complete: a.plot.complete && b.plot.complete, z: a.plot.z && { ...a.plot.z, low: null, high: null, scale: 'linear' },
    y: isRaster ? a.plot.y : { ...a.plot.y, scale: 'linear' },
  };
  const arrays = { ...a.arrays, [name]: made };
  if (!isRaster) {
    delete arrays.low;
    delete arrays.high;
  }
  return { plot, arrays, buffer: new ArrayBuffer(0) };
}

/** The picture in words, for readers who do not see it. */
export function describe(picture: Picture): string {
  const { plot, x, y } = picture;
  const ends = (mapping: Mapping) => `${mapping.words(mapping.from(mapping.ends[0]))} to ${mapping.words(mapping.from(mapping.ends[1]))}`;
  const unit = (axis: Axis) => (axis.unit ? ` ${unitOf(axis)}` : '');
  const text = [`${plot.title}.`, plot.note ? `${plot.note}.` : '', `Horizontal: ${plot.x.label}, ${ends(x)}${unit(plot.x)}.`];
  if (picture.kind === 'raster') {
    text.push(`Vertical: ${plot.y.label}, ${ends(y)}${unit(plot.y)}.`,
      `Colour: ${picture.zTitle}, ${short(picture.range.low)} to ${short(picture.range.high)}; ${picture.width} by ${picture.height} cells.`);
  } else {
    text.push(`Vertical: ${plot.y.label}.`);
    for (const line of picture.lines.slice(0, 8)) {
      const found = extent([line.y], false);
      text.push(`${line.name}: ${found ? `${short(found[0])} to ${short(found[1])}${unit(plot.y)}` : 'no values'}.`);
    }
  }
  text.push(`${plot.rows_used} of ${plot.rows} rows.`);
  return text.filter(Boolean).join(' ');
}

/** Lines of which the readout has all values; of more it has the nearest line alone. */
const READ_LINES = 6;

/** What lies at a place, in words; positions of the mappings. `baseline`: those of the plot. */
export function readout(picture: Picture, px: number, py: number, baseline: string): string {
  const { plot, x, y } = picture;
  const vx = x.from(px);
  const unit = (axis: Axis) => (axis.scale === 'time' ? ` ${axis.unit || 'UTC'}` : axis.unit ? ` ${unitOf(axis)}` : '');
  const of = ['waterfall', 'spectrum', 'amp_time', 'phase_time'].includes(plot.kind) && !plot.selection.by ? `, ${baseline}` : '';
  if (picture.kind === 'raster') {
    const at = cellAt(picture, px, py);
    if (!at) return '';
    const value = picture.values[at[1] * picture.width + at[0]]!;
    const z = plot.z ? unit(plot.z) : '';
    const none = picture.flagged?.[at[1] * picture.width + at[0]] ? 'all flagged' : 'no value';
    return `${x.words(vx)}${unit(plot.x)}, ${y.words(y.from(py))}${unit(plot.y)}${of}: ${Number.isNaN(value) ? none : short(value) + z}`;
  }
  if (picture.names) {
    const scale = (mapping: Mapping) => mapping.ends[1] - mapping.ends[0];
    const away = (i: number) => Math.hypot((x.to(picture.values[i]!) - px) / scale(x), (y.to(picture.lines[0]!.y[i]!) - py) / scale(y));
    const at = picture.names.reduce((best, _, i) => (away(i) < away(best) ? i : best), 0);
    return `${picture.names[at]}: ${x.words(picture.values[at]!)}${unit(plot.x)} ${plot.x.label}, ${short(picture.lines[0]!.y[at])}${unit(plot.y)} ${plot.y.label}`;
  }
  let near = 0;
  for (let i = 1; i < picture.values.length; i += 1) {
    if (Math.abs(picture.values[i]! - vx) < Math.abs(picture.values[near]! - vx)) near = i;
  }
  const away = (line: Line) => Math.abs(y.to(line.y[near]!) - py);
  const nearest = (lines: Line[]) => lines.filter((line) => Number.isFinite(away(line))).sort((a, b) => away(a) - away(b)).slice(0, 1);
  const named = picture.lines.length > READ_LINES ? nearest(picture.lines) : picture.lines;
  const values = named.map((line) => `${line.name} ${short(line.y[near])}`).join(', ') || 'no value';
  return `${x.words(picture.values[near]!)}${unit(plot.x)}${of}: ${values}${values === 'no value' ? '' : unit(plot.y)}`;
}

/** Column and row of a raster at a place, or null outside. */
export function cellAt({ x, y, xEdges, yEdges }: Raster, px: number, py: number): [number, number] | null {
  const column = cell(xEdges, x.from(px));
  const found = cell(yEdges, y.from(py));
  return column < 0 || found < 0 ? null : [column, found];
}
