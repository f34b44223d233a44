/** The alerts of a file, as the server sends them, and what else the reader has to know at once. */
import { el } from './dom';
import type { Alert } from './server';

/** The texts of the address: one rule in each, or several with commas. */
export const rulesOf = (texts: string[]) => texts.flatMap((text) => text.split(',')).map((text) => text.trim()).filter(Boolean);

export class Alarms {
  readonly box = el('p', { class: 'alarms', role: 'alert' });
  /** By rule, and other messages by their kind. */
  private readonly texts = new Map<string, string>();

  alert({ rule, active, text, since }: Alert) {
    this.say(`rule ${rule}`, active ? `${text}, since ${since.slice(11, 19)} UTC` : '');
  }

  /** Shows a message of a kind, instead of the one before; an empty one removes it. */
  say(kind: string, text: string | null) {
    if (text) this.texts.set(kind, text);
    else this.texts.delete(kind);
    const shown = [...this.texts.values()].join('; ');
    if (this.box.textContent !== shown) this.box.textContent = shown;
  }

  /** Removes everything: a new stream sends what holds. */
  clear() {
    this.texts.clear();
    this.box.textContent = '';
  }
}
