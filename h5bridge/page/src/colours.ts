/** Colour scales that readers with any kind of colour vision can tell apart, and rasters painted with them. */
import type { Numbers } from './frame';

/** Colours evenly spaced, six digits a colour. */
const STOPS = {
  viridis: '440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f988b1fa08822a78528ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23d8e219ece51bfde725',
  cividis: '00224e00285b002e6a0533711a386f273e6e32436d3b496c434e6c4b546c535a6d5a5f6e61656f686a716f70737676767d7c788482798c8878938e789b9476a39a74aba072b4a76fbcae6cc4b468cdbb63d5c25edec958e7d150f0d846f9e03afee838',
  grey: '0a0a0af5f5f5',
  /** For angles: both ends are the same colour. */
  twilight: 'e2d9e2d7d7ddc4ced4acc2cc95b5c781a6c37297c16887be6276ba5f64b55e51ad5d3da1592a8f511b7745135c3811452f14363a113a4a13425f174a741e4f872750983550a64550b25652bb6958c27c63c89073cca389d1b6a3d8c7bedfd4d6e2d9e2',
  /** For differences: blue below zero, orange above. */
  difference: '0b3c7a2f74b57fb2d9c9dfedf5f5f5fbd9b0f2a65ac9661a7a3206',
} as const;

export type Scale = keyof typeof STOPS;
export const SCALES: Scale[] = ['viridis', 'cividis', 'grey'];

const made = new Map<Scale, Uint32Array>();

/** 256 colours as the four bytes red, green, blue, opacity in memory, on a little-endian machine. */
export function table(scale: Scale): Uint32Array {
  let found = made.get(scale);
  if (found) return found;
  const stops = (STOPS[scale].match(/../g) ?? []).map((text) => parseInt(text, 16));
  found = new Uint32Array(256);
  const last = stops.length / 3 - 1;
  for (let i = 0; i < 256; i += 1) {
    const at = (i / 255) * last;
    const before = Math.min(Math.floor(at), last - 1);
    const part = (channel: number) => {
      const a = stops[before * 3 + channel]!;
      return Math.round(a + (stops[before * 3 + 3 + channel]! - a) * (at - before));
    };
    found[i] = (0xff000000 | (part(2) << 16) | (part(1) << 8) | part(0)) >>> 0;
  }
  made.set(scale, found);
  return found;
}

/** A colour of a scale as CSS writes it; `at` from 0 to 1. */
export function css(scale: Scale, at: number): string {
  const colour = table(scale)[Math.max(0, Math.min(255, Math.round(at * 255)))]!;
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

/** Lines: after Okabe and Ito, those that are seen on white and on black. */
export const LINES = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b58900', '#56b4e9', '#7a7a7a', '#8c564b'];

/** The colour of cells all of whose data are flagged, #f0a090, as `table` has colours. */
const FLAGGED = 0xff90a0f0;

export interface Range {
  low: number;
  high: number;
  log: boolean;
}

/** The range that holds all but half a percent of the finite values at each end; those above 0 only if `log`. */
export function limits(data: Numbers, log: boolean): [number, number] | null {
  const step = Math.max(1, Math.floor(data.length / 50000));
  const found: number[] = [];
  for (let i = 0; i < data.length; i += step) {
    const value = data[i]!;
    if (Number.isFinite(value) && !(log && value <= 0)) found.push(value);
  }
  if (!found.length) return null;
  found.sort((a, b) => a - b);
  return [found[Math.floor(0.005 * (found.length - 1))]!, found[Math.ceil(0.995 * (found.length - 1))]!];
}

/**
 * Paints a raster of `height` rows of `width` values, one pixel each. The first row of the data is the lowest one of the picture.
 * Cells all of whose data are flagged are salmon; NaN, a number of points that is 0, and on a logarithmic scale what is not above 0, stay transparent.
 */
export function paint(canvas: OffscreenCanvas, width: number, height: number, data: Numbers, range: Range, scale: Scale, flagged: Numbers | null) {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = table(scale);
  const { low, high, log } = range;
  const isCount = data instanceof Uint32Array;
  const from = log ? Math.log(low) : low;
  const width255 = (log ? Math.log(high) : high) - from;
  const factor = width255 > 0 ? 255 / width255 : 0;
  const shift = width255 > 0 ? 0 : 127;
  for (let y = 0; y < height; y += 1) {
    let pixel = (height - 1 - y) * width;
    for (let i = y * width; i < (y + 1) * width; i += 1, pixel += 1) {
      const value = data[i]!;
      if (flagged?.[i]) pixels[pixel] = FLAGGED;
      if (value !== value || (log && value <= 0) || (isCount && value === 0)) continue;
      const at = ((log ? Math.log(value) : value) - from) * factor + shift;
      pixels[pixel] = colours[at <= 0 ? 0 : at >= 255 ? 255 : at | 0]!;
    }
  }
  context.putImageData(image, 0, 0);
}
