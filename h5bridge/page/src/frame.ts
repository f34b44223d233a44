/** Frames: safetensors documents with the description of a plot in their metadata, under the key `plot`. */

export interface Axis {
  label: string;
  unit: string;
  /** `category`: numbers that `names` gives names to. */
  scale: 'linear' | 'log' | 'time' | 'category';
  names?: string[] | null;
}

export interface ZAxis extends Axis {
  low: number | null;
  high: number | null;
}

export interface Plot {
  kind: string;
  title: string;
  note: string | null;
  revision: number | string;
  rows: number;
  rows_used: number;
  complete: boolean;
  stale: boolean;
  /** Reading has stopped, until a request with a larger `more`. */
  stopped?: boolean;
  selection: Record<string, unknown>;
  x: Axis;
  y: Axis;
  z: ZAxis | null;
  series: string[] | null;
}

export type Numbers = Float32Array | Float64Array | Uint32Array | Uint8Array;

export interface Tensor {
  /** Slowest axis first. */
  shape: number[];
  data: Numbers;
}

export interface Frame {
  plot: Plot;
  arrays: Record<string, Tensor>;
  /** The document as it came. */
  buffer: ArrayBuffer;
}

const TYPES = { F32: Float32Array, F64: Float64Array, U32: Uint32Array, U8: Uint8Array } as const;

interface Entry {
  dtype: string;
  shape: number[];
  /** First byte and the byte after the last, counted from the end of the header. */
  data_offsets: [number, number];
}

/** Takes a frame apart. Throws an `Error` that says what is wrong with the document. */
export function decode(buffer: ArrayBuffer): Frame {
  if (buffer.byteLength < 8) throw new Error(`a frame of ${buffer.byteLength} bytes`);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (8 + length > buffer.byteLength) throw new Error(`a frame of ${buffer.byteLength} bytes with a header of ${length}`);
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as
    { __metadata__?: { plot?: string } } & Record<string, Entry>;
  if (!metadata?.plot) throw new Error('a frame without a description');
  const arrays: Frame['arrays'] = {};
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(entries as Record<string, Entry>)) {
    const Type = TYPES[dtype as keyof typeof TYPES];
    if (!Type) throw new Error(`${name}: numbers of the type ${dtype}`);
    if (8 + length + end > buffer.byteLength || shape.reduce((all, n) => all * n, 1) * Type.BYTES_PER_ELEMENT !== end - begin) {
      throw new Error(`${name}: bytes ${begin} to ${end} are not ${shape.join(' x ')} numbers`);
    }
    arrays[name] = { shape, data: new Type(buffer.slice(8 + length + begin, 8 + length + end)) };
  }
  return { plot: JSON.parse(metadata.plot) as Plot, arrays, buffer };
}

/** One of the arrays; throws if the frame has none of this name. */
export function tensor(frame: Frame, name: string): Tensor {
  const found = frame.arrays[name];
  if (!found) throw new Error(`${frame.plot.kind}: the frame has no array ${name}`);
  return found;
}

/** Lines of one value for each x, as rows of a tensor of two axes. */
export function row({ shape, data }: Tensor, index: number): Numbers {
  const n = shape[shape.length - 1] ?? 0;
  return data.subarray(index * n, (index + 1) * n);
}
