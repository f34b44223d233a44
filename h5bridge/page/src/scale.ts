/** Axes: where a value lies on the screen's even scale, and which values get a mark. */
import type { Axis, Numbers } from './frame';
import { clock, day, short } from './format';

export interface Tick {
  position: number;
  label: string;
}

/** From values to positions, which are even on the screen, and back. */
export interface Mapping {
  /** Positions of the two ends. */
  ends: [number, number];
  to(value: number): number;
  from(position: number): number;
  /** About `n` marks between two positions. */
  ticks(low: number, high: number, n: number): Tick[];
  /** A value in words. */
  words(value: number): string;
  /** The unit of the labels of the marks. */
  unit: string;
}

const STEPS = [1, 2, 5, 10];
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function niceStep(span: number, n: number): number {
  const rough = span / Math.max(1, n);
  const size = 10 ** Math.floor(Math.log10(rough));
  return (STEPS.find((step) => step * size >= rough * 0.999) ?? 10) * size;
}

function multiples(low: number, high: number, step: number): number[] {
  const found: number[] = [];
  if (!(step > 0) || (high - low) / step > 1000) return found;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
  return found;
}

function numbersOf(low: number, high: number, n: number): Tick[] {
  const step = niceStep(high - low, n);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || digits > 5;
  const power = (value: number) => value.toExponential(Math.max(0, Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9)));
  return multiples(low, high, step).map((position) => {
    if (Math.abs(position) < step / 2) return { position: 0, label: (0).toFixed(large ? 0 : digits) };
    return { position, label: large ? power(position) : position.toFixed(digits) };
  });
}

function timesOf(low: number, high: number, n: number): Tick[] {
  const rough = (high - low) / Math.max(1, n);
  const step = rough < 1 ? niceStep(high - low, n) : SECONDS.find((found) => found >= rough) ?? Math.ceil(rough / 86400) * 86400;
  return multiples(low, high, step).map((position) => ({ position, label: step >= 86400 ? day(position) : clock(position, step) }));
}

function linear(axis: Axis, ends: [number, number], names: string[] | null): Mapping {
  const isTime = axis.scale === 'time';
  const [unit, factor] = reading(axis, ...ends);
  return {
    ends, unit,
    to: (value) => value,
    from: (position) => position,
    ticks: (low, high, n) => {
      if (names) {
        const every = Math.max(1, Math.ceil((high - low) / Math.max(1, n)));
        return multiples(low, high, every).filter((at) => names[at] !== undefined).map((at) => ({ position: at, label: names[at]! }));
      }
      if (isTime) return timesOf(low, high, n);
      return numbersOf(low * factor, high * factor, n).map(({ position, label }) => ({ position: position / factor, label }));
    },
    words: (value) => (names ? names[Math.round(value)] ?? short(value) : isTime ? clock(value, (ends[1] - ends[0]) / 500) : short(value)),
  };
}

/** An axis whose values fall from left to right, such as right ascension: positions are the values with the other sign. */
function falling(axis: Axis, first: number, last: number): Mapping {
  const rising = linear(axis, [last, first], null);
  return {
    ...rising, ends: [-first, -last],
    to: (value) => -value,
    from: (position) => -position,
    ticks: (low, high, n) => rising.ticks(-high, -low, n).map(({ position, label }) => ({ position: -position, label })),
  };
}

/** Logarithmic: positions are powers of ten. */
export function logarithmic(low: number, high: number, axis: Axis): Mapping {
  const [unit, factor] = reading(axis, low, high);
  const shift = Math.log10(factor);
  return {
    unit,
    ends: [Math.log10(low), Math.log10(high)],
    to: (value) => (value > 0 ? Math.log10(value) : NaN),
    from: (position) => 10 ** position,
    ticks: (first, last, n) => {
      const [from, to] = [first + shift, last + shift];
      const decades = to - from;
      const every = Math.max(1, Math.ceil(decades / Math.max(1, n)));
      if (decades < 0.7) {
        return numbersOf(10 ** from, 10 ** to, n).filter(({ position }) => position > 0)
          .map(({ position, label }) => ({ position: Math.log10(position) - shift, label }));
      }
      const leading = decades * 3 <= n ? [1, 2, 5] : decades * 2 <= n ? [1, 3] : [1];
      const found: Tick[] = [];
      for (let power = Math.floor(from); power <= Math.ceil(to); power += 1) {
        if (power % every) continue;
        for (const digit of leading) {
          const position = power + Math.log10(digit);
          if (position >= from - 1e-9 && position <= to + 1e-9) found.push({ position: position - shift, label: short(digit * 10 ** power) });
        }
      }
      return found;
    },
    words: short,
  };
}

/** Largest index whose edge is not above the value; -1 below the first. */
export function below(edges: Numbers, value: number): number {
  let low = -1;
  let high = edges.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle]! <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** Cell of a raster that holds a value; -1 outside. */
export function cell(edges: Numbers, value: number): number {
  if (edges.length > 1 && edges[0]! > edges[edges.length - 1]!) {
    return cell(Float64Array.from(edges, (edge) => -edge), -value);
  }
  const at = below(edges, value);
  return at === edges.length - 1 && value === edges[at] ? at - 1 : at < edges.length - 1 ? at : -1;
}

/** One cell after another, each of the same size, whatever its edges. */
function indexed(axis: Axis, edges: Numbers): Mapping {
  const n = edges.length - 1;
  const from = (position: number) => {
    const at = Math.max(0, Math.min(n - 1, Math.floor(position)));
    return edges[at]! + (edges[at + 1]! - edges[at]!) * Math.max(0, Math.min(1, position - at));
  };
  const span = Math.abs(edges[n]! - edges[0]!);
  const words = (value: number) => (axis.scale === 'time' ? clock(value, span / 500) : short(value));
  return {
    ends: [0, n], unit: unitOf(axis),
    to: (value) => {
      const at = Math.max(0, Math.min(n - 1, below(edges, value)));
      const width = edges[at + 1]! - edges[at]!;
      return at + (width > 0 ? Math.max(0, Math.min(1, (value - edges[at]!) / width)) : 0);
    },
    from,
    ticks: (low, high, count) => multiples(low, high, Math.max(1, Math.round(niceStep(high - low, count))))
      .map((position) => ({ position, label: words(from(position)) })),
    words,
  };
}

const isEven = (values: number[]) => {
  const n = values.length - 1;
  const step = (values[n]! - values[0]!) / n;
  return values.every((value, i) => Math.abs(value - values[0]! - i * step) <= Math.abs(step) * 0.02);
};

/** The mapping of an axis of a raster from the edges of its cells. */
export function ofEdges(axis: Axis, edges: Numbers, names: string[] | null): Mapping {
  const values = Array.from(edges);
  const ends: [number, number] = [values[0]!, values[values.length - 1]!];
  if (ends[0] > ends[1]) return falling(axis, ...ends);
  if (values.length < 3 || axis.scale === 'time' || isEven(values)) return linear(axis, ends, axis.scale === 'category' ? names : null);
  if (axis.scale === 'log' && values[0]! > 0 && isEven(values.map(Math.log10))) return logarithmic(...ends, axis);
  return indexed(axis, edges);
}

/** The mapping of an axis of lines between two values. */
export function ofRange(axis: Axis, low: number, high: number, log: boolean, names: string[] | null): Mapping {
  if (log && high > 0) return logarithmic(low > 0 ? low : high / 1000, high, axis);
  return linear(axis, low < high ? [low, high] : [low - 0.5, high + 0.5], axis.scale === 'category' ? names : null);
}

/** Runs of rows of about the same height, for an axis on which rows may differ in height: first row and the row after the last. */
export function evenRuns(edges: Numbers): [number, number][] {
  const runs: [number, number][] = [];
  const height = (row: number) => edges[row + 1]! - edges[row]!;
  for (let row = 0; row + 1 < edges.length; row += 1) {
    const last = runs[runs.length - 1];
    if (last && Math.abs(height(row) - height(last[0])) <= 0.02 * height(last[0])) last[1] = row + 1;
    else runs.push([row, row + 1]);
  }
  return runs;
}

/** Units in which numbers are read more easily: unit, factor to it, and the smallest and largest size that it suits. */
const UNITS: Record<string, [unit: string, factor: number, from: number, to: number][]> = {
  MHz: [['GHz', 1e-3, 1e4, Infinity], ['kHz', 1e3, 0, 1]],
  m: [['km', 1e-3, 1e4, Infinity]],
  kλ: [['Mλ', 1e-3, 1e4, Infinity], ['λ', 1e3, 0, 1]],
  Jy: [['kJy', 1e-3, 1e4, Infinity], ['mJy', 1e3, 1e-3, 1], ['µJy', 1e6, 0, 1e-3]],
};

/** The unit in which numbers between these ends are read easily, and the factor to it. */
function reading(axis: Axis, low: number, high: number): [unit: string, factor: number] {
  const most = Math.max(Math.abs(low), Math.abs(high));
  const found = UNITS[unitOf(axis)]?.find(([, , from, to]) => most > 0 && most >= from && most < to);
  return found ? [found[0], found[1]] : [unitOf(axis), 1];
}

/** Unit as it is printed. */
export const unitOf = ({ unit }: Axis) => (unit === 'klambda' ? 'kλ' : unit);

/** Label of an axis with its unit, and the day if it shows times of day. */
export function title(axis: Axis, values: ArrayLike<number>, { unit }: Mapping): string {
  const first = values[0];
  const last = values[values.length - 1];
  if (axis.scale === 'time' && first !== undefined && last !== undefined) {
    const days = day(first) === day(last) ? day(first) : `${day(first)} to ${day(last)}`;
    return `${axis.label}, ${axis.unit || 'UTC'}, ${days}`;
  }
  return unit ? `${axis.label} (${unit})` : axis.label;
}
