/** The state of the page, all of it in the address, so that a colleague sees the same. */

/** What selects rows and cells: these go to the server as they are. */
export const SELECTION = ['column', 'spw', 'field', 'scan', 'corr', 'baseline', 'antenna', 'time', 'chan', 'average', 'flagged'] as const;

export class State {
  private query = new URLSearchParams(location.search);
  private readonly listeners: ((names: string[]) => void)[] = [];

  constructor() {
    window.addEventListener('popstate', () => {
      const before = this.query;
      this.query = new URLSearchParams(location.search);
      const names = new Set([...before.keys(), ...this.query.keys()]);
      this.tell([...names].filter((name) => before.get(name) !== this.query.get(name)));
    });
  }

  get(name: string): string {
    return this.query.get(name) ?? '';
  }

  all(name: string): string[] {
    return this.query.getAll(name);
  }

  /** Sets values, or removes those that are empty. A step of the browser's "back" unless `quiet`. */
  set(values: Record<string, string | string[]>, quiet = false) {
    const changed = Object.keys(values).filter((name) => [values[name]].flat().join('\n') !== this.query.getAll(name).join('\n'));
    if (!changed.length) return;
    for (const name of changed) {
      this.query.delete(name);
      for (const value of [values[name]!].flat()) if (value) this.query.append(name, value);
    }
    const address = `?${this.query}`;
    if (quiet) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
    this.tell(changed);
  }

  onChange(listener: (names: string[]) => void) {
    this.listeners.push(listener);
  }

  private tell(names: string[]) {
    for (const listener of this.listeners) listener(names);
  }
}
