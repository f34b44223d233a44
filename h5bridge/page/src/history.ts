/** Alerts that began and ended while the page was open, with a sound and a notification for who asked for them. */
import { button, el } from './dom';
import { moment } from './format';

interface Entry {
  file: string;
  rule: string;
  /** Has the value at which the alert began. */
  text: string;
  /** UTC, as servers write it. */
  since: string;
  until: string | null;
}

const ENTRIES = 'h5bridge-alerts';
const MOST = 200;

function stored<T>(storage: () => Storage, name: string, none: T): T {
  try {
    return (JSON.parse(storage().getItem(name) ?? 'null') as T | null) ?? none;
  } catch {
    return none; // storage is switched off, or has the text of something else
  }
}

function store(storage: () => Storage, name: string, value: unknown) {
  try {
    storage().setItem(name, JSON.stringify(value));
  } catch { /* storage is switched off: the value lasts as long as the page */ }
}

const lasting = () => localStorage;
const ofTab = () => sessionStorage;

/** A switch that this browser remembers; `ask` is called when the reader presses it, and may refuse. */
function remembered(text: string, title: string, name: string, ask: () => Promise<boolean> | boolean) {
  let is = stored(lasting, name, false);
  const made = button(text, title, () => {
    void Promise.resolve(is ? false : ask()).then((now) => {
      is = now;
      store(lasting, name, is);
      made.setAttribute('aria-pressed', String(is));
    });
  });
  made.setAttribute('aria-pressed', String(is));
  return { made, is: () => is };
}

export class History {
  readonly box = el('details', { class: 'history' });
  private readonly summary = el('summary');
  private readonly list = el('ol', { tabindex: 0, 'aria-label': 'Alerts, the newest first' });
  /** The newest first. */
  private entries = stored<Entry[]>(ofTab, ENTRIES, []);
  private audio: AudioContext | null = null;
  private readonly sound = remembered('Sound', 'A sound when an alert begins', 'h5bridge-sound', () => this.beep());
  private readonly notice = remembered('Notify', 'A notification of the system when an alert begins', 'h5bridge-notify',
    async () => (await Notification.requestPermission()) === 'granted');

  /** `isShort`: without the names of files. */
  constructor(private readonly isShort: boolean) {
    this.notice.made.hidden = !('Notification' in window);
    this.close();
    this.box.append(this.summary, el('div', { class: 'bar' }, this.sound.made, this.notice.made), this.list);
  }

  /** Whether alerts still hold is not known: a stream that is opened next tells of those that do. */
  close() {
    const now = new Date().toISOString();
    for (const entry of this.entries) entry.until ??= now;
    this.draw();
  }

  /** An alert holds since a moment: new, or told again by a stream that is opened again. */
  begin(file: string, rule: string, text: string, since: string) {
    const known = this.entries.find((entry) => entry.file === file && entry.rule === rule && entry.since === since);
    if (known?.text === text) {
      known.until = null;
      this.draw();
      return;
    }
    this.entries = [{ file, rule, text, since, until: null }, ...this.entries].slice(0, MOST);
    if (known) known.until = since;
    this.draw();
    if (this.sound.is()) this.beep();
    if (this.notice.is() && 'Notification' in window) new Notification(file, { body: text, tag: `${file} ${rule}` });
  }

  end(file: string, rule: string, until: string) {
    for (const entry of this.entries) if (entry.file === file && entry.rule === rule) entry.until ??= until;
    this.draw();
  }

  /** Two tones of a quarter of a second; false if the browser has no sound. */
  private beep(): boolean {
    if (!('AudioContext' in window)) return false;
    const audio = (this.audio ??= new AudioContext());
    void audio.resume();
    [880, 660].forEach((frequency, index) => {
      const tone = audio.createOscillator();
      const volume = audio.createGain();
      volume.gain.value = 0.2;
      tone.frequency.value = frequency;
      tone.connect(volume).connect(audio.destination);
      tone.start(audio.currentTime + index * 0.25);
      tone.stop(audio.currentTime + (index + 1) * 0.25);
    });
    return true;
  }

  private draw() {
    store(ofTab, ENTRIES, this.entries);
    const active = this.entries.filter(({ until }) => until === null).length;
    this.summary.textContent = `Alerts: ${this.entries.length || 'none'}${active ? `, ${active} now` : ''}`;
    this.list.replaceChildren(...this.entries.map(({ file, text, since, until }) => el('li', { class: until === null ? 'alarm' : '' },
      el('time', { datetime: since, title: since }, moment(since)), until === null ? ' ' : ` to ${moment(until).slice(11)} `,
      this.isShort ? text : `${file}: ${text}`)));
  }
}
