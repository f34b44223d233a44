/** The page that shows a local file without a server: H5Web over the program h5-page, which runs in a worker. */
import '@h5web/app/styles.css';
import './common.css';
import './explore.css';
import './local.css';
import { App, H5GroveProvider, type ExportFormat, type Dataset, type Fetcher } from '@h5web/app';
import { createRoot } from 'react-dom/client';
import { isDark, themeSwitch } from './theme';
import type { Answer, Question } from './wasi';
import Wasi from './wasi?worker&inline';

const byId = (id: string) => document.getElementById(id)!;
const [message, viewer] = [byId('message'), byId('root')];
const input = byId('file') as HTMLInputElement;

/** The compiled program, which scripts/wasm puts into the page. */
const program = Uint8Array.from(atob(byId('program').textContent ?? ''), (letter) => letter.charCodeAt(0));

/** Asks a worker that has `file` open. */
class Local {
  private readonly worker = new Wasi();
  private readonly waiting = new Map<number, { give(answer: ArrayBuffer): void; refuse(reason: Error): void }>();
  private questions = 0;

  constructor(file: File) {
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const asked = this.waiting.get(data.number);
      this.waiting.delete(data.number);
      if (data.answer) asked?.give(data.answer);
      else asked?.refuse(new Error(data.refusal));
    };
    // the worker itself does not run: no question would ever be answered
    this.worker.onerror = (event) => {
      for (const asked of this.waiting.values()) asked.refuse(new Error(event.message || 'The worker cannot be started.'));
      this.waiting.clear();
    };
    this.worker.postMessage({ program, file });
  }

  ask(words: string[]): Promise<ArrayBuffer> {
    this.questions += 1;
    const question: Question = { number: this.questions, words };
    return new Promise((give, refuse) => {
      this.waiting.set(question.number, { give, refuse });
      this.worker.postMessage(question);
    });
  }

  /** H5Web's way to ask a server. */
  readonly fetcher: Fetcher = (url, parameters) => {
    const words = Object.entries(parameters).filter(([name]) => name !== 'file').map(([name, value]) => `${name}=${value}`);
    return this.ask([url.slice(url.lastIndexOf('/') + 1), ...words]);
  };

  close() {
    this.worker.terminate();
  }
}

const root = createRoot(viewer);
let local: Local | undefined;

function say(text: string) {
  message.textContent = text;
  message.hidden = false;
}

async function show(file: File) {
  local?.close();
  const opened = new Local(file);
  local = opened;
  byId('name').textContent = file.name;
  document.title = `${file.name} - h5bridge`;
  viewer.hidden = true;
  say(`Opening ${file.name} ...`);
  try {
    await opened.ask(['meta', 'path=/']);
  } catch (reason) {
    if (local === opened) say(`${file.name} cannot be shown: ${(reason as Error).message}`);
    return;
  }
  if (local !== opened) return;
  const exported = (format: ExportFormat, { path }: Dataset, selection?: string) => async () => {
    const words = ['data', `path=${path}`, `format=${format}`, ...(selection ? [`selection=${selection}`] : [])];
    return new Blob([await opened.ask(words)]);
  };
  message.hidden = true;
  viewer.hidden = false;
  root.render(
    <H5GroveProvider url="" filepath={file.name} resetKeys={[opened]} fetcher={opened.fetcher}
      getExportURL={(format, dataset, selection, own) => (own ? undefined : exported(format, dataset, selection))}>
      <App key={file.name} disableDarkMode />
    </H5GroveProvider>,
  );
}

const paint = () => viewer.classList.toggle('dark', isDark());
document.querySelector('.bar')!.append(themeSwitch(paint));
paint();
input.addEventListener('change', () => {
  if (input.files?.[0]) void show(input.files[0]);
});
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  const file = event.dataTransfer?.files[0];
  if (file) void show(file);
});
