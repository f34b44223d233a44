/** Elements without a framework. */

type Attributes = Record<string, string | number | boolean | null | undefined>;

/** An element with attributes and children. `true` sets an attribute without a value, `false` and null leave it out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: (Node | string | null)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, '');
    else if (value !== false && value != null) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A button that calls `press`. */
export function button(text: string, title: string, press: () => void): HTMLButtonElement {
  const made = el('button', { type: 'button', title }, text);
  made.addEventListener('click', press);
  return made;
}
