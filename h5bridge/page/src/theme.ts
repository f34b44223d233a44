/** Dark or light: the system's choice until the reader makes one, which this browser remembers. */
import { button } from './dom';

const KEY = 'h5bridge-theme';

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage is switched off
  }
}

function apply(theme: string | null) {
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}

export function isDark(): boolean {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

/** A colour of common.css. */
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The switch; `changed` is called when colours have to be drawn again. */
export function themeSwitch(changed: () => void = () => {}): HTMLButtonElement {
  apply(stored());
  const label = () => {
    made.textContent = isDark() ? 'Light' : 'Dark';
    made.title = isDark() ? 'Change to light colours' : 'Change to dark colours';
  };
  const made = button('', '', () => {
    const theme = isDark() ? 'light' : 'dark';
    apply(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch { /* storage is switched off: the choice lasts as long as the page */ }
    label();
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    label();
    changed();
  });
  label();
  return made;
}
