/** Live files in turn, for a screen that nobody touches: `rotate` in the address has the seconds for each. */
import { button, el } from './dom';
import { files, hasPlots } from './server';
import type { State } from './state';

const LEAST_SECONDS = 5;

/** The address of the same page for another file: what belongs to one file alone is left out. */
function addressFor(file: string): string {
  const query = new URLSearchParams(location.search);
  const own = /^(\w+\.[xy]|waterfall\.baseline|spw|field|scan|baseline|antenna|time|chan|with|compare)$/;
  for (const name of [...query.keys()]) if (own.test(name)) query.delete(name);
  query.set('file', file);
  return `?${query}`;
}

export class Rotation {
  readonly box = el('span', { class: 'rotation' });
  private left: number;
  private isAsking = false;

  /** `isHeld`: the reader has paused the page. */
  constructor(private readonly state: State, private readonly file: string, private readonly isHeld: () => boolean) {
    this.left = this.seconds();
    setInterval(() => this.tick(), 1000);
    this.draw();
  }

  private seconds(): number {
    const given = Number(this.state.get('rotate'));
    return given > 0 ? Math.max(LEAST_SECONDS, given) : 0;
  }

  private draw() {
    if (!this.seconds()) {
      this.box.replaceChildren();
      return;
    }
    const text = this.isHeld() ? 'next file: paused' : `next file in ${this.left} s`;
    if (!this.box.firstChild) {
      this.box.append(el('span', { class: 'faint' }), button('Next', 'Show the next live file', () => void this.next()),
        button('Stay', 'Stay on this file', () => this.state.set({ rotate: '' }, true)));
    }
    this.box.firstChild!.textContent = text;
  }

  private tick() {
    if (!this.isHeld() && !document.hidden && this.seconds()) {
      this.left -= 1;
      if (this.left <= 0) void this.next();
    }
    this.draw();
  }

  /** Goes to the live file after this one; stays if it is the only one or the server does not answer. */
  private async next() {
    this.left = this.seconds();
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      const live = (await files()).filter((source) => source.kind === 'live' && hasPlots(source)).map((source) => source.file);
      const next = live.find((name) => name > this.file) ?? live.find((name) => name !== this.file);
      if (next !== undefined) location.replace(addressFor(next));
    } catch { /* the next turn asks again */ } finally {
      this.isAsking = false;
    }
  }
}
