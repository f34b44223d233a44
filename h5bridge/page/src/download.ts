/** Files made of what a plot shows. */
import { tensor, type Frame, type Tensor } from './frame';
import type { Picture } from './picture';
import { colour } from './theme';

export function save(name: string, parts: BlobPart[], type: string) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = Object.assign(document.createElement('a'), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const NUMPY = new Map<unknown, string>([[Float32Array, '<f4'], [Float64Array, '<f8'], [Uint32Array, '<u4']]);

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

const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The numbers of a frame as lines of text. A raster: x, y at the centres of cells, and the value; cells without one are left out. */
export function csv(frame: Frame): string {
  const { plot } = frame;
  const head = (axis: { label: string; unit: string }) => quoted(axis.unit ? `${axis.label} (${axis.unit})` : axis.label);
  const x = tensor(frame, 'x').data;
  const out: string[] = [];
  if (frame.arrays.raster) {
    const { shape: [height = 0, width = 0], data } = frame.arrays.raster;
    const y = tensor(frame, 'y').data;
    out.push([head(plot.x), head(plot.y), plot.z ? head(plot.z) : 'value'].join(','));
    for (let j = 0; j < height; j += 1) {
      for (let i = 0; i < width; i += 1) {
        const value = data[j * width + i]!;
        if (!Number.isNaN(value)) out.push(`${(x[i]! + x[i + 1]!) / 2},${(y[j]! + y[j + 1]!) / 2},${value}`);
      }
    }
  } else {
    const { shape: [series = 0], data } = tensor(frame, 'y');
    out.push([head(plot.x), ...(plot.series ?? []).map((name) => quoted(`${name}${plot.y.unit && ` (${plot.y.unit})`}`))].join(','));
    for (let i = 0; i < x.length; i += 1) {
      const values = Array.from({ length: series }, (_, j) => {
        const value = data[j * x.length + i]!;
        return Number.isNaN(value) ? '' : String(value);
      });
      out.push([x[i], ...values].join(','));
    }
  }
  return `${out.join('\n')}\n`;
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
