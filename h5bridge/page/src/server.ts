/** Requests to the server. All addresses are relative to the page, so that it works below any prefix. */

/** A source, as `/api/files` lists it. */
export interface Source {
  file: string;
  kind: 'hdf5' | 'live' | 'table';
  /** Null: not opened yet. */
  measurement_set: boolean | null;
  content: 'MeasurementSet' | 'calibration table' | 'image' | null;
  bytes: number | null;
  /** Seconds since 1970, or a date in text. */
  modified: number | string | null;
  rows: number | null;
}

/** A refusal, with the message of the server. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly retryAfter: number | null = null) {
    super(message);
  }
}

/** The refusal in an answer whose status is not 200. */
export async function refusal(answer: Response): Promise<Refusal> {
  if (answer.status === 401) {
    return new Refusal(401, 'This browser is not let in: open the address with the token that h5bridge serve printed.');
  }
  const text = await answer.text();
  let message = text.slice(0, 500);
  try {
    message = (JSON.parse(text) as { message: string }).message;
  } catch { /* plain text, as proxies send it */ }
  const retry = Number(answer.headers.get('Retry-After'));
  return new Refusal(answer.status, message || `status ${answer.status}`, retry > 0 ? retry : null);
}

/** The JSON document at an address. Throws `Refusal`, or what `fetch` throws when the server is not reached. */
export async function json<T>(address: string): Promise<T> {
  const answer = await fetch(address, { headers: { Accept: 'application/json' } });
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as T;
}

export const files = () => json<Source[]>('api/files');

/** Whether a source has plots; null: not opened yet. */
export const hasPlots = ({ measurement_set: is, content }: Source) => (content === 'image' ? true : is);

/** Address of a page for a source. */
export function pageOf(page: 'explore' | 'ms', file: string): string {
  return `${page}.html?file=${encodeURIComponent(file)}`;
}

/** What an error says, for a person. */
export function words(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (error instanceof TypeError) return 'The server does not answer.';
  return error instanceof Error ? error.message : String(error);
}

/** State of a live file: the line of `watch --json`, with `revision` and `lag_seconds`. */
export interface Look {
  /** Rows of all tables. */
  rows: number;
  tables?: Record<string, number>;
  revision: number | string;
  rows_per_second: number | null;
  bytes_per_second: number | null;
  commit_age_seconds: number | null;
  lag_seconds: number | null;
  newest_time: { mjd_seconds: number; utc: string } | null;
  /** Fraction of the newest cells. */
  flagged: number | null;
  open?: boolean;
  kind?: string;
  scan?: number | string | null;
  field?: number | string | null;
}

/** The beginning or the end of a state that a rule warns of. */
export interface Alert {
  rule: string;
  active: boolean;
  text: string;
  /** UTC; of the event and of the beginning. */
  time: string;
  since: string;
}

/** State of a live file on the board. Without the rest where it cannot be read. */
export interface BoardLine extends Partial<Pick<Look, 'rows_per_second' | 'commit_age_seconds' | 'lag_seconds' | 'flagged' | 'open'>> {
  file: string;
  /** Rows of the main table. */
  rows?: number;
  alerts: Pick<Alert, 'rule' | 'text'>[];
  problem: string | null;
}

/** Rows of the main table. */
export const mainRows = (look: Look) => look.tables?.MAIN ?? look.rows;

/** Called with what an event stream brings; `L` is a look. */
export interface Listener<L = Look> {
  look?(look: L): void;
  progress?(progress: { rows_used: number; rows: number }): void;
  alert?(alert: Alert): void;
  /** Why the file cannot be read; null: it can be read again. */
  problem?(message: string | null): void;
  board?(extent: { files: number; left_out: number }): void;
  end?(reason: string): void;
  /** The server does not give the stream, for a reason. */
  refused?(refusal: Refusal): void;
  connected?(is: boolean): void;
}

/**
 * The events of a file. Closed while the page is hidden, because a browser allows six connections to one host; opened again after
 * an error, which `EventSource` does by itself only for some.
 */
export class Events<L = Look> {
  private stream: EventSource | null = null;
  private timer = 0;
  private ended = false;

  constructor(private readonly address: string, private readonly listener: Listener<L>) {
    document.addEventListener('visibilitychange', this.follow);
    window.addEventListener('pagehide', this.drop);
    window.addEventListener('pageshow', this.follow);
    this.follow();
  }

  close() {
    this.ended = true;
    this.drop();
    document.removeEventListener('visibilitychange', this.follow);
    window.removeEventListener('pagehide', this.drop);
    window.removeEventListener('pageshow', this.follow);
  }

  private readonly drop = () => {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  };

  private readonly follow = () => {
    if (document.hidden || this.ended) this.drop();
    else if (!this.stream) this.open();
  };

  private open() {
    const stream = new EventSource(this.address);
    this.stream = stream;
    const on = <T>(name: string, call: ((value: T) => void) | undefined) => stream.addEventListener(name, (event) => {
      let value: T;
      try {
        value = JSON.parse((event as MessageEvent<string>).data) as T;
      } catch {
        return;
      }
      call?.(value);
    });
    stream.addEventListener('open', () => this.listener.connected?.(true));
    on<L>('look', this.listener.look?.bind(this.listener));
    on<{ rows_used: number; rows: number }>('progress', this.listener.progress?.bind(this.listener));
    on<Alert>('alert', this.listener.alert?.bind(this.listener));
    on<{ message: string | null }>('problem', ({ message }) => this.listener.problem?.(message));
    on<{ files: number; left_out: number }>('board', this.listener.board?.bind(this.listener));
    on<{ reason: string }>('end', ({ reason }) => {
      this.ended = true;
      this.drop();
      this.listener.end?.(reason);
    });
    stream.addEventListener('error', () => {
      this.listener.connected?.(false);
      if (stream.readyState === EventSource.CLOSED && this.stream === stream) {
        this.drop();
        this.timer = window.setTimeout(this.follow, 5000);
        void this.ask();
      }
    });
  }

  /** Asks why there is no stream, which an `EventSource` does not say. */
  private async ask() {
    const stop = new AbortController();
    try {
      const answer = await fetch(this.address, { signal: stop.signal });
      if (!answer.ok && !this.ended) this.listener.refused?.(await refusal(answer));
    } catch { /* not reached: the next try tells */ } finally {
      stop.abort();
    }
  }
}
