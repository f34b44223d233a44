/** The page of a MeasurementSet: plots that follow its rows while they are written. */
import './common.css';
import './ms.css';
import { Alarms, rulesOf } from './alerts';
import { description, type Choice, type Description } from './describe';
import { button, el } from './dom';
import { Events, files, json, pageOf, words, type Look, type Source } from './server';
import { State } from './state';
import { Strip } from './strip';
import { themeSwitch } from './theme';
import { SCALES } from './colours';
import { KINDS, View, type Page } from './view';

const state = new State();
const file = state.get('file');
document.title = file ? `${file} - h5bridge` : 'h5bridge';

const status = el('span', { class: 'faint', role: 'status' });
const unseen = el('div', { class: 'unseen', 'aria-live': 'polite' });
const controls = el('div', { class: 'bar controls', role: 'group', 'aria-label': 'Selection' });
const strip = new Strip();
const alarms = new Alarms();
const plots = el('main', { id: 'plots' });
const page: Page = {
  state, file, antennas: [],
  say: (text) => {
    unseen.textContent = text;
  },
};
let views: View[] = [];
let newest: Look | null = null;
let waiting = false;

const isPaused = () => state.get('paused') === '1';
const pauseButton = button('Pause', 'Stop or go on drawing (p)', () => state.set({ paused: isPaused() ? '' : '1' }, true));

function showPaused() {
  pauseButton.setAttribute('aria-pressed', String(isPaused()));
  pauseButton.textContent = isPaused() ? 'Go on' : 'Pause';
}

const explore = el('a', { href: pageOf('explore', file) }, 'Explore');
const root = document.getElementById('root')!;
root.append(el('header', { class: 'bar' },
  el('a', { href: './?list' }, 'Sources'), el('h1', {}, file), explore,
  status, el('span', { class: 'space' }), pauseButton, themeSwitch(() => views.forEach((view) => view.restyle()))),
controls, strip.box, alarms.box, plots, unseen);

function refresh() {
  waiting = isPaused();
  if (!waiting) for (const view of views) view.refresh();
}

// ---- pickers --------------------------------------------------------------------------------------------------------

/** Elements that show the state, and how. */
const shown: (() => void)[] = [];

function picker(label: string, name: string, choices: Choice[], none: string | null): HTMLElement {
  const select = el('select', { name }, ...(none === null ? [] : [el('option', { value: '' }, none)]),
    ...choices.map(({ value, label: text }) => el('option', { value }, text)));
  select.addEventListener('change', () => state.set({ [name]: select.value }));
  shown.push(() => {
    const value = state.get(name);
    // an address may name what is no choice of ours: a range, several, a name
    if (value && ![...select.options].some((option) => option.value === value)) select.append(el('option', { value }, value));
    select.value = value;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  });
  return el('label', {}, label, select);
}

function input(label: string, name: string, choices: string[], placeholder: string, kind = ''): HTMLElement {
  const known = el('datalist', { id: `known-${name}` }, ...choices.map((value) => el('option', { value })));
  const field = el('input', { type: 'text', name, list: known.id, placeholder, class: kind, autocomplete: 'off', spellcheck: 'false' });
  field.addEventListener('change', () => state.set({ [name]: field.value.trim() }));
  shown.push(() => {
    field.value = state.get(name);
  });
  return el('label', {}, label, field, known);
}

const plain = (values: readonly string[]): Choice[] => values.map((value) => ({ value, label: value }));

function pairs(antennas: string[]): string[] {
  const found = ['cross', 'auto', 'all'];
  for (let i = 0; i < antennas.length && found.length < 3000; i += 1) {
    for (let j = i + 1; j < antennas.length; j += 1) found.push(`${antennas[i]}-${antennas[j]}`);
  }
  return found;
}

function buildControls(found: Description, others: Source[]) {
  shown.length = 0;
  controls.replaceChildren();
  if (found.columns.length > 1) controls.append(picker('Column', 'column', plain(found.columns), `${found.columns[0]}`));
  if (found.windows.length > 1) controls.append(picker('Window', 'spw', found.windows, 'newest'));
  if (found.fields.length > 1) controls.append(picker('Field', 'field', found.fields, 'all'));
  controls.append(found.scans.length ? picker('Scan', 'scan', found.scans, 'all') : input('Scan', 'scan', [], 'all', 'short'));
  if (found.correlations.length > 1) controls.append(input('Correlation', 'corr', found.correlations, 'default', 'short'));
  controls.append(input('Baseline', 'baseline', pairs(found.antennas.map(({ value }) => value)), 'cross'));
  if (found.antennas.length) controls.append(picker('Antenna', 'antenna', found.antennas, 'all'));
  controls.append(input('Channels', 'chan', [], 'all', 'short'),
    picker('Flagged cells', 'flagged', [{ value: 'include', label: 'shown' }], 'left out'),
    picker('Colours', 'colours', plain(SCALES.slice(1)), SCALES[0]!));
  if (others.length) {
    controls.append(picker('Compare with', 'with', others.map(({ file: name }) => ({ value: name, label: name })), 'nothing'),
      picker('as', 'compare', [{ value: 'difference', label: 'difference' }], 'side by side'));
  }
  controls.append(input('Alert', 'alert', ['flagged > 40 %', 'flagged > 40 % for antenna', 'no rows for 30 s', 'lag > 20 s', 'amplitude step > 3'], 'no rows for 30 s'));
  showState();
}

function showState() {
  for (const show of shown) show();
  showPaused();
  plots.classList.toggle('wide', state.get('with') !== '' && state.get('compare') !== 'difference');
}

// ---- begin ----------------------------------------------------------------------------------------------------------

let stream: Events | null = null;
let before: string | number | null = null;
let stale = false;

/** Listens to the file with the rules of the address; without them when the server refuses them. */
function listen(withRules = true) {
  stream?.close();
  const rules = withRules ? rulesOf(state.all('alert')) : [];
  if (withRules) alarms.clear();
  const address = ['file', ...rules.map(() => 'alert')].map((name, at) => `${name}=${encodeURIComponent([file, ...rules][at]!)}`);
  stream = new Events(`live/events?${address.join('&')}`, {
    look: (look) => {
      newest = look;
      strip.show(look);
      status.textContent = isPaused() ? 'paused' : look.kind === 'live' || look.open ? 'live' : '';
      status.classList.remove('alarm');
      if (look.revision !== before || stale) refresh();
      stale = views.some((view) => view.box.dataset.stale === 'true');
      before = look.revision;
    },
    progress: ({ rows_used: used, rows: all }) => {
      if (all > 0 && used < all) status.textContent = `read ${Math.floor((100 * used) / all)} %`;
      else if (status.textContent.startsWith('read ')) status.textContent = newest?.kind === 'live' ? 'live' : '';
    },
    alert: (alert) => alarms.alert(alert),
    problem: (message) => alarms.say('problem', message && `the file cannot be read: ${message}`),
    refused: ({ status: code, message }) => {
      const isOfRules = code === 422 && rules.length > 0;
      alarms.say(isOfRules ? 'rules' : 'refused', message);
      if (isOfRules) listen(false);
    },
    end: (reason) => {
      const texts: Record<string, string> = { closed: 'closed', replaced: 'another file has replaced it: reload', gone: 'the file is gone' };
      status.textContent = texts[reason] ?? reason;
      if (reason === 'closed') refresh();
    },
    connected: (is) => {
      if (!is) {
        status.textContent = 'connection lost';
        status.classList.add('alarm');
      } else if (status.classList.contains('alarm')) {
        alarms.say('refused', null);
        status.textContent = '';
        status.classList.remove('alarm');
        refresh();
      }
    },
  });
}

/** The second source of a comparison may grow, too. */
let other: Events | null = null;
function listenToOther() {
  other?.close();
  const name = state.get('with');
  let before: string | number | null = null;
  other = name && name !== file ? new Events(`live/events?file=${encodeURIComponent(name)}`, {
    look: ({ revision }) => {
      if (revision !== before) refresh();
      before = revision;
    },
  }) : null;
}

async function begin() {
  if (!file) {
    plots.replaceChildren(el('p', { class: 'message' }, 'The address names no file. ', el('a', { href: './?list' }, 'Sources')));
    return;
  }
  let found: Description;
  try {
    found = description(await json(`live/describe?file=${encodeURIComponent(file)}`));
  } catch (error) {
    plots.replaceChildren(el('p', { class: 'message alarm', role: 'alert' }, words(error)),
      el('p', { class: 'message' }, el('a', { href: pageOf('explore', file) }, 'Look at it in the explorer')));
    return;
  }
  if (found.missing) {
    plots.replaceChildren(el('p', { class: 'message' }, `${found.missing}. `, el('a', { href: pageOf('explore', file) }, 'Look at it in the explorer')));
    listen();
    return;
  }
  page.antennas = found.antennas.map(({ label }) => label);
  const others = await files().catch((): Source[] => []);
  buildControls(found, others.filter((source) => source.file !== file && source.measurement_set !== false));
  const wanted = state.get('plots').split(',').filter(Boolean);
  const kinds = wanted.length ? wanted.flatMap((name) => KINDS.filter(({ kind }) => kind === name)) : KINDS;
  views = kinds.filter(({ kind }) => !found.plots.length || found.plots.includes(kind)).map((kind) => new View(kind, page));
  plots.replaceChildren(...views.map((view) => view.box));
  listen();
  listenToOther();
}

state.onChange((names) => {
  if (names.includes('file')) {
    location.reload();
    return;
  }
  showState();
  if (names.includes('alert') && stream) listen();
  for (const view of views) view.changed(names);
  if (names.includes('with')) listenToOther();
  if (names.includes('paused') && !isPaused() && waiting) refresh();
});
document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === 'p' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) pauseButton.click();
});
showPaused();
void begin();
