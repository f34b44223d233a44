/** Files made of what a plot shows. */
import { instant } from './format';
import { row, tensor, type Axis, type Frame, type Tensor } from './frame';
import type { Picture } from './picture';
import { colour } from './theme';

export function save(name: string, parts: BlobPart[], type: string) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = Object.assign(document.createElement('a'), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const NUMPY = new Map<unknown, string>([[Float32Array, '<f4'], [Float64Array, '<f8'], [Uint32Array, '<u4'], [Uint8Array, '|u1']]);

/** A tensor as numpy writes it, version 1.0 of the format. */
export function npy({ shape, data }: Tensor): BlobPart[] {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${NUMPY.get(data.constructor)}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64 - 10;
  const header = new Uint8Array(10 + length);
  header.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8]);
  header.set(new TextEncoder().encode(`${text.padEnd(length - 1)}\n`), 10);
  return [header, new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)];
}

/** A value of 32 bits with as many digits as it takes to tell it from its neighbours; NaN is empty. */
function text32(value: number): string {
  if (Number.isNaN(value)) return '';
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(Math.fround(value) === value ? 9 : 17)));
}

const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * The numbers of a frame as text, as `h5bridge plot` writes them. Lines: a column for x, and one for each line, with its lowest and
 * highest values. A raster: the first line has the edges of x, the first column those of y; the last edge of y stands alone.
 */
export function csv(frame: Frame): string {
  const { plot, arrays } = frame;
  const head = (axis: Axis) => quoted(axis.unit ? `${axis.label} (${axis.unit})` : axis.label);
  const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? '' : String(value));
  const coordinate = (axis: Axis, value: number) => {
    const name = Number.isInteger(value) ? axis.names?.[value] : undefined;
    return name !== undefined ? quoted(name) : axis.scale === 'time' ? instant(value) : number(value);
  };
  const x = tensor(frame, 'x').data;
  const out: string[] = [];
  if (arrays.raster) {
    const y = tensor(frame, 'y').data;
    out.push([`${head(plot.y)} \\ ${head(plot.x)}`, ...Array.from(x, (value) => coordinate(plot.x, value))].join(','));
    y.forEach((value: number, j: number) => {
      const cells = j < arrays.raster!.shape[0]! ? Array.from(row(arrays.raster!, j), text32) : [];
      out.push([coordinate(plot.y, value), ...cells].join(','));
    });
  } else {
    const kinds = ['', 'low', 'high', 'phase'].filter((name) => arrays[name || 'y']);
    const names = plot.series ?? [];
    out.push([head(plot.x), ...names.flatMap((name) => kinds.map((kind) => quoted(`${name} ${kind}`.trimEnd())))].join(','));
    x.forEach((value: number, i: number) => {
      const cells = names.flatMap((_, j) => kinds.map((kind) => text32(arrays[kind || 'y']!.data[j * x.length + i]!)));
      out.push([coordinate(plot.x, value), ...cells].join(','));
    });
  }
  return `${out.join('\r\n')}\r\n`;
}

/** The drawn plots side by side, with the title above. */
export async function png(canvases: HTMLCanvasElement[], title: string, pictures: Picture[]): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const keys = pictures[0]?.kind === 'lines' ? pictures[0].lines : [];
  const top = (keys.length > 1 ? 44 : 26) * ratio;
  const width = canvases.reduce((all, canvas) => all + canvas.width, 0);
  const height = Math.max(...canvases.map((canvas) => canvas.height)) + top;
  const sheet = new OffscreenCanvas(width, height);
  const context = sheet.getContext('2d')!;
  context.fillStyle = colour('--ground');
  context.fillRect(0, 0, width, height);
  context.fillStyle = colour('--text');
  context.font = `600 ${13 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  context.fillText(title, 8 * ratio, 17 * ratio, width - 16 * ratio);
  context.font = `${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  let x = 8 * ratio;
  for (const { name, colour: fill } of keys.length > 1 ? keys : []) {
    context.fillStyle = fill;
    context.fillText(name, x, 36 * ratio);
    x += context.measureText(name).width + 14 * ratio;
  }
  let left = 0;
  for (const canvas of canvases) {
    context.drawImage(canvas, left, top);
    left += canvas.width;
  }
  return sheet.convertToBlob({ type: 'image/png' });
}
