/** Numbers and times in words. */

/** Seconds from MJD 0 to 1970-01-01. */
const EPOCH = 40587 * 86400;

const DASH = '–';

export const count = (n: number | null | undefined) => (n == null ? DASH : n.toLocaleString('en'));

export function bytes(n: number | null | undefined): string {
  if (n == null) return DASH;
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? n : n.toPrecision(3)} ${units[unit]}`;
}

export function seconds(s: number | null | undefined): string {
  if (s == null) return DASH;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export const percent = (fraction: number | null | undefined) => (fraction == null ? DASH : `${(100 * fraction).toFixed(1)} %`);

/** Six digits at most. */
export function short(value: number | null | undefined): string {
  if (value == null || Number.isNaN(value)) return DASH;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(5)));
}

/** MJD seconds as a date of JavaScript; null outside what it represents. */
function date(mjd: number): Date | null {
  const found = new Date((mjd - EPOCH) * 1000);
  return Number.isNaN(found.getTime()) ? null : found;
}

/** hh:mm:ss of MJD seconds, with as many decimals as `step` seconds need. */
export function clock(mjd: number, step = 1): string {
  const found = date(mjd);
  if (!found) return DASH;
  return found.toISOString().slice(11, step < 0.1 ? 23 : step < 1 ? 21 : 19);
}

/** The day of MJD seconds. */
export const day = (mjd: number) => date(mjd)?.toISOString().slice(0, 10) ?? DASH;

/** Date and time of MJD seconds, in UTC. */
export const instant = (mjd: number) => date(mjd)?.toISOString() ?? `${mjd - EPOCH} s`;

/** Seconds since 1970, or a text that a server sent, in the reader's own time. */
export function moment(time: number | string | null | undefined): string {
  if (time == null) return DASH;
  const found = typeof time === 'number' ? new Date(time * 1000) : new Date(time);
  if (Number.isNaN(found.getTime())) return String(time);
  const local = new Date(found.getTime() - found.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, 19).replace('T', ' ');
}

/** Date and time in UTC of seconds since 1970, or of a text that a server sent. */
export function utc(time: number | string | null | undefined): string {
  if (time == null) return DASH;
  const found = new Date(typeof time === 'number' ? time * 1000 : time);
  return Number.isNaN(found.getTime()) ? String(time) : found.toISOString().slice(0, 19).replace('T', ' ');
}
