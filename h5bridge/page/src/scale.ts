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
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || step < 1e-4;
  return multiples(low, high, step).map((position) => ({
    position, label: large ? short(position) : position.toFixed(Math.min(digits, 10)),
  }));
}

function timesOf(low: number, high: number, n: number): Tick[] {
  const rough = (high - low) / Math.max(1, n);
  const step = rough < 1 ? niceStep(high - low, n) : SECONDS.find((found) => found >= rough) ?? Math.ceil(rough / 86400) * 86400;
  return multiples(low, high, step).map((position) => ({ position, label: step >= 86400 ? day(position) : clock(position, step) }));
}

function linear(axis: Axis, ends: [number, number], names: string[] | null): Mapping {
  const isTime = axis.scale === 'time';
  return {
    ends,
    to: (value) => value,
    from: (position) => position,
    ticks: (low, high, n) => {
      if (names) {
        const every = Math.max(1, Math.ceil((high - low) / Math.max(1, n)));
        return multiples(low, high, every).filter((at) => names[at] !== undefined).map((at) => ({ position: at, label: names[at]! }));
      }
      return isTime ? timesOf(low, high, n) : numbersOf(low, high, n);
    },
    words: (value) => (names ? names[Math.round(value)] ?? short(value) : isTime ? clock(value, (ends[1] - ends[0]) / 500) : short(value)),
  };
}

/** Logarithmic: positions are powers of ten. */
export function logarithmic(low: number, high: number): Mapping {
  return {
    ends: [Math.log10(low), Math.log10(high)],
    to: (value) => (value > 0 ? Math.log10(value) : NaN),
    from: (position) => 10 ** position,
    ticks: (from, to, n) => {
      const decades = to - from;
      const every = Math.max(1, Math.ceil(decades / Math.max(1, n)));
      if (decades < 0.7) {
        return numbersOf(10 ** from, 10 ** to, n).filter(({ position }) => position > 0)
          .map(({ position, label }) => ({ position: Math.log10(position), label }));
      }
      const leading = decades * 3 <= n ? [1, 2, 5] : decades * 2 <= n ? [1, 3] : [1];
      const found: Tick[] = [];
      for (let power = Math.floor(from); power <= Math.ceil(to); power += 1) {
        if (power % every) continue;
        for (const digit of leading) {
          const position = power + Math.log10(digit);
          if (position >= from - 1e-9 && position <= to + 1e-9) found.push({ position, label: short(digit * 10 ** power) });
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

/** Cell of a raster that holds a value; -1 outside. Edges rise. */
export function cell(edges: Numbers, value: number): number {
  const at = below(edges, value);
  return at === edges.length - 1 && value === edges[at] ? at - 1 : at < edges.length - 1 ? at : -1;
}

/** One cell after another, each of the same size, whatever its edges: integrations with gaps left out. */
function indexed(axis: Axis, edges: Numbers): Mapping {
  const n = edges.length - 1;
  const from = (position: number) => {
    const at = Math.max(0, Math.min(n - 1, Math.floor(position)));
    return edges[at]! + (edges[at + 1]! - edges[at]!) * Math.max(0, Math.min(1, position - at));
  };
  const span = Math.abs(edges[n]! - edges[0]!);
  const words = (value: number) => (axis.scale === 'time' ? clock(value, span / 500) : short(value));
  return {
    ends: [0, n],
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
  if (values.length < 3 || isEven(values)) return linear(axis, ends, axis.scale === 'category' ? names : null);
  if (axis.scale === 'log' && values[0]! > 0 && isEven(values.map(Math.log10))) return logarithmic(...ends);
  return indexed(axis, edges);
}

/** The mapping of an axis of lines between two values. */
export function ofRange(axis: Axis, low: number, high: number, log: boolean, names: string[] | null): Mapping {
  if (log && high > 0) return logarithmic(low > 0 ? low : high / 1000, high);
  return linear(axis, low < high ? [low, high] : [low - 0.5, high + 0.5], axis.scale === 'category' ? names : null);
}

/** Unit as it is printed. */
export const unitOf = ({ unit }: Axis) => (unit === 'klambda' ? 'kλ' : unit);

/** Label of an axis with its unit, and the day if it shows times of day. */
export function title(axis: Axis, values: ArrayLike<number>): string {
  const first = values[0];
  const last = values[values.length - 1];
  if (axis.scale === 'time' && first !== undefined && last !== undefined) {
    const days = day(first) === day(last) ? day(first) : `${day(first)} to ${day(last)}`;
    return `${axis.label}, ${axis.unit || 'UTC'}, ${days}`;
  }
  return axis.unit ? `${axis.label} (${unitOf(axis)})` : axis.label;
}
