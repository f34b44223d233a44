/**
 * A worker that runs the program h5-page once for each question, as its system: the calls of WASI (preview 1) that read one file,
 * `/file`, and write to two streams. A worker, because only there files can be read without waiting for promises.
 */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

export interface Question {
  number: number;
  /** Arguments of the program after the file. */
  words: string[];
}

/** One of `answer` and `refusal`. */
export interface Answer {
  number: number;
  answer?: ArrayBuffer;
  refusal?: string;
}

const [OK, BAD_DESCRIPTOR, IO, NO_SYSTEM] = [0, 8, 29, 52];
const [OUTPUT, ERRORS, FOLDER, FILE] = [1, 2, 3, 4];

/** Bytes of the file that are read at once, and blocks that are kept: most questions are about a few. */
const [BLOCK, BLOCKS] = [1 << 18, 256];

/** A file, read in blocks. */
class Blocks {
  private readonly reader = new FileReaderSync();
  private readonly kept = new Map<number, Uint8Array>();

  constructor(readonly file: File) {}

  /** Bytes from an offset on, at least one unless the file ends there. */
  at(offset: number, most: number): Uint8Array {
    if (most > BLOCK) return this.read(offset, most);
    const number = Math.floor(offset / BLOCK);
    const block = this.kept.get(number) ?? this.read(number * BLOCK, BLOCK);
    this.kept.delete(number);
    this.kept.set(number, block); // the newest last
    if (this.kept.size > BLOCKS) this.kept.delete(this.kept.keys().next().value!);
    return block.subarray(offset - number * BLOCK, offset - number * BLOCK + most);
  }

  private read(offset: number, bytes: number) {
    return new Uint8Array(this.reader.readAsArrayBuffer(this.file.slice(offset, offset + bytes)));
  }
}

class Exit extends Error {}

/** One run of the program. */
class Run {
  readonly written: Uint8Array<ArrayBuffer>[][] = [[], [], []];
  private memory!: WebAssembly.Memory;
  private offset = 0;
  private readonly words: Uint8Array[];

  constructor(private readonly blocks: Blocks, words: string[]) {
    const encoder = new TextEncoder();
    this.words = ['h5-page', '/file', ...words].map((word) => encoder.encode(`${word.replaceAll('\0', '')}\0`));
  }

  start(program: WebAssembly.Module): void {
    const calls = new Proxy(this.calls, { get: (known, name: string) => known[name] ?? (() => NO_SYSTEM) });
    const instance = new WebAssembly.Instance(program, { wasi_snapshot_preview1: calls as unknown as WebAssembly.ModuleImports });
    this.memory = instance.exports.memory as WebAssembly.Memory;
    try {
      (instance.exports._start as () => void)();
    } catch (reason) {
      if (!(reason instanceof Exit)) throw reason;
    }
  }

  text(stream: number): Promise<string> {
    return new Blob(this.written[stream]).text();
  }

  private get view() {
    return new DataView(this.memory.buffer);
  }

  private bytes(at: number, length: number) {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  private number(at: number, value: number) {
    this.view.setUint32(at, value, true);
    return OK;
  }

  /** Address and length of each buffer in a list. */
  private *buffers(list: number, count: number) {
    for (let at = list; at < list + 8 * count; at += 8) {
      yield [this.view.getUint32(at, true), this.view.getUint32(at + 4, true)] as const;
    }
  }

  private read(list: number, count: number, done: number) {
    let total = 0;
    for (const [at, length] of this.buffers(list, count)) {
      let filled = 0;
      while (filled < length) {
        const found = this.blocks.at(this.offset, length - filled);
        if (found.length === 0) return this.number(done, total);
        this.bytes(at + filled, found.length).set(found);
        filled += found.length;
        total += found.length;
        this.offset += found.length;
      }
    }
    return this.number(done, total);
  }

  /** Arguments are those of WASI, in its order. */
  private readonly calls: Record<string, (...args: never[]) => number> = {
    args_sizes_get: (count: number, size: number) => {
      this.number(count, this.words.length);
      return this.number(size, this.words.reduce((sum, word) => sum + word.length, 0));
    },
    args_get: (pointers: number, at: number) => {
      for (const [number, word] of this.words.entries()) {
        this.number(pointers + 4 * number, at);
        this.bytes(at, word.length).set(word);
        at += word.length;
      }
      return OK;
    },
    environ_sizes_get: (count: number, size: number) => this.number(count, 0) || this.number(size, 0),
    environ_get: () => OK,
    random_get: (at: number, length: number) => {
      crypto.getRandomValues(this.bytes(at, length));
      return OK;
    },
    fd_prestat_get: (descriptor: number, at: number) => {
      if (descriptor !== FOLDER) return BAD_DESCRIPTOR;
      return this.number(at, 0) || this.number(at + 4, 1); // a folder, whose name has one letter
    },
    fd_prestat_dir_name: (_descriptor: number, at: number) => {
      this.bytes(at, 1).set([0x2f]); // "/"
      return OK;
    },
    fd_fdstat_get: (descriptor: number, at: number) => {
      const kind = descriptor === FOLDER ? 3 : descriptor === FILE ? 4 : 2;
      this.bytes(at, 24).fill(0).set([kind]);
      this.bytes(at + 8, 16).fill(0xff); // all rights
      return OK;
    },
    path_open: (_folder: number, _flags: number, _name: number, _length: number, _how: number, _rights: bigint, _inherited: bigint,
      _state: number, descriptor: number) => this.number(descriptor, FILE),
    fd_close: () => OK,
    fd_seek: (_descriptor: number, offset: bigint, from: number, found: number) => {
      this.offset = Number(offset) + [0, this.offset, this.blocks.file.size][from]!;
      this.view.setBigUint64(found, BigInt(this.offset), true);
      return OK;
    },
    fd_read: (_descriptor: number, list: number, count: number, done: number) => {
      try {
        return this.read(list, count, done);
      } catch {
        return IO; // the file was changed or removed
      }
    },
    fd_write: (descriptor: number, list: number, count: number, done: number) => {
      let total = 0;
      for (const [at, length] of this.buffers(list, count)) {
        this.written[descriptor]?.push(this.bytes(at, length).slice());
        total += length;
      }
      return this.number(done, total);
    },
    proc_exit: () => {
      throw new Exit();
    },
  };
}

let program: WebAssembly.Module;
let blocks: Blocks;

onmessage = async ({ data }: MessageEvent<{ program: BufferSource; file: File } | Question>) => {
  if ('program' in data) {
    program = new WebAssembly.Module(data.program);
    blocks = new Blocks(data.file);
    return;
  }
  const { number, words } = data;
  let told: Answer;
  try {
    const run = new Run(blocks, words);
    run.start(program);
    const refusal = (await run.text(ERRORS)).trim();
    told = refusal ? { number, refusal } : { number, answer: await new Blob(run.written[OUTPUT]).arrayBuffer() };
  } catch (reason) {
    told = { number, refusal: String(reason) };
  }
  postMessage(told, { transfer: told.answer ? [told.answer] : [] });
};
