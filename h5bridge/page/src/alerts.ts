/** Rules that the reader is warned by: `flagged > 40 %`, `lag > 20 s`, `rows/s < 100`, `no rows for 30 s`. */
import { seconds } from './format';
import type { Look } from './server';

/** What is wrong, or null. `quiet`: seconds since the file grew. */
export type Rule = (look: Look, quiet: number) => string | null;

const VALUES: Record<string, (look: Look) => number | null> = {
  flagged: (look) => (look.flagged == null ? null : look.flagged * 100),
  lag: (look) => look.lag_seconds,
  'commit age': (look) => look.commit_age_seconds,
  'rows/s': (look) => look.rows_per_second,
};

/** The rule that a text states; null if it states none. */
export function rule(text: string): Rule | null {
  const silence = /^\s*no rows for\s+([\d.]+)\s*(s|min)?\s*$/i.exec(text);
  if (silence) {
    const limit = Number(silence[1]) * (silence[2] === 'min' ? 60 : 1);
    return limit > 0 ? (_, quiet) => (quiet > limit ? `no rows for ${seconds(quiet)}` : null) : null;
  }
  const limit = /^\s*(flagged|lag|commit age|rows\/s)\s*([<>])\s*([\d.]+)\s*(%|s)?\s*$/i.exec(text);
  if (!limit) return null;
  const [, name = '', sign, number, unit = ''] = limit;
  const value = VALUES[name.toLowerCase()]!;
  return (look) => {
    const found = value(look);
    if (found == null || (sign === '>' ? found <= Number(number) : found >= Number(number))) return null;
    return `${name.toLowerCase()} ${Number(found.toPrecision(3))} ${unit} ${sign} ${number} ${unit}`.replaceAll('  ', ' ').trim();
  };
}
