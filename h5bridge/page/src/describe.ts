/** What a MeasurementSet contains, as the pickers need it. */

export interface Choice {
  value: string;
  label: string;
}

export interface Description {
  /** `live`, `hdf5` or `table`. */
  kind: string;
  telescope: string;
  project: string;
  isCalibration: boolean;
  /** First and last TIME, seconds of MJD; null without rows. */
  times: [number, number] | null;
  /** Lowest and highest frequency of all windows, Hz; null without frequencies. */
  band: [number, number] | null;
  /** Name and number of pixels of the axes of an image after the first two. */
  planes: [name: string, pixels: number][];
  antennas: Choice[];
  fields: Choice[];
  /** By DATA_DESC_ID. */
  windows: Choice[];
  correlations: string[];
  columns: string[];
  /** Kinds of plots that the source has. */
  plots: string[];
  scans: Choice[];
  rows: number | null;
  /** Why the plots cannot be shown, if they cannot. */
  missing: string;
}

type Document = Record<string, unknown>;

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown) => (value == null ? '' : String(value));

/** Name of an entry that is a text, a number or an object with `name`. */
function nameOf(entry: unknown): string {
  return typeof entry === 'object' && entry !== null ? text((entry as Document).name) : text(entry);
}

/** Rows of a subtable: the value of each is its name, or `#5` where that is empty or the name of several rows. */
function named(entries: unknown[]): Choice[] {
  const names = entries.map(nameOf);
  return names.map((name, row) => {
    const isUnique = name !== '' && names.indexOf(name) === names.lastIndexOf(name);
    return { value: isUnique ? name : `#${row}`, label: name === '' ? `#${row}` : isUnique ? name : `${name} (#${row})` };
  });
}

/** Rows of a subtable: the value of each is its number, as `#5` where a number could be a name. */
function numbered(entries: unknown[]): Choice[] {
  const areNumbers = entries.some((entry) => /^\d+$/.test(nameOf(entry)));
  return named(entries).map(({ label }, row) => ({ value: areNumbers ? `#${row}` : String(row), label }));
}

function windows(entries: unknown[]): Choice[] {
  return entries.map((entry, index) => {
    const of = (typeof entry === 'object' && entry !== null ? entry : {}) as Document;
    const value = text(of.id ?? index);
    const frequencies = list(of.frequencies).map(Number);
    const [low, high] = [frequencies[0], frequencies[frequencies.length - 1]];
    const band = low !== undefined && high !== undefined
      ? `${Math.round(Math.min(low, high) / 1e6)}–${Math.round(Math.max(low, high) / 1e6)} MHz, ${frequencies.length} channels` : '';
    return { value, label: [value, nameOf(entry), band].filter(Boolean).join(': ') };
  });
}

/** Reads the document of `/live/describe`. */
export function description(document: Document): Description {
  const spws = list(document.spectral_windows);
  const ofWindows = spws.flatMap((entry) => list((entry as Document | null)?.correlations).map(text));
  const ends = spws.flatMap((entry) => {
    const all = list((entry as Document | null)?.frequencies).map(Number);
    return all.length ? [all[0]!, all[all.length - 1]!] : [];
  });
  const times = list(document.time_range).map(Number);
  return {
    kind: text(document.kind),
    telescope: text(document.telescope),
    project: text(document.project),
    isCalibration: document.is_calibration === true,
    times: times.length === 2 ? [times[0]!, times[1]!] : null,
    band: ends.length ? [Math.min(...ends), Math.max(...ends)] : null,
    planes: list(document.planes) as [string, number][],
    antennas: named(list(document.antennas)),
    fields: numbered(list(document.fields)),
    windows: windows(spws),
    correlations: [...new Set(ofWindows)],
    columns: list(document.columns).map(text),
    plots: list(document.plots).map(text),
    scans: list(document.scans).map((entry) => ({ value: nameOf(entry), label: nameOf(entry) })),
    rows: document.rows == null ? null : Number(document.rows),
    missing: text(document.missing),
  };
}
