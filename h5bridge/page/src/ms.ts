/** The page of a MeasurementSet: plots that follow its rows while they are written. */
import './common.css';
import './ms.css';
import { Alarms, rulesOf } from './alerts';
import { description, type Choice, type Description } from './describe';
import { button, el } from './dom';
import { History } from './history';
import { Rotation } from './rotation';
import { Events, Refusal, files, json, mainRows, pageOf, words, type Look, type Source } from './server';
import { SELECTION, State } from './state';
import { Strip, facts } from './strip';
import { themeSwitch } from './theme';
import { SCALES } from './colours';
import { KINDS, View, type Page } from './view';

const state = new State();
const file = state.get('file');
document.title = file ? `${file} - h5bridge` : 'h5bridge';

const status = el('span', { class: 'faint', role: 'status' });
const unseen = el('div', { class: 'unseen', 'aria-live': 'polite' });
const chosen = el('summary', {}, 'Selection');
const controls = el('div', { class: 'bar controls', role: 'group', 'aria-label': 'Selection' });
const fold = el('details', { class: 'fold' }, chosen, controls);
const strip = new Strip();
const above = el('div');
const alarms = new Alarms();
const history = new History(true);
history.box.hidden = true;
const plots = el('div', { id: 'plots' });
const failures = new Map<View, string>();
const page: Page = {
  state, file, antennas: [], kinds: [], lines: '',
  say: (text) => {
    unseen.textContent = text;
  },
  fail: (view, text) => {
    if (text) failures.set(view, text);
    else failures.delete(view);
    // one banner for a reason that several plots have
    const all = [...failures.values()];
    const shared = [...new Set(all.filter((one, at) => all.indexOf(one) !== at))];
    for (const [failed, one] of failures) failed.tell(shared.includes(one) ? '' : one);
    alarms.say('plots', shared.join('; '));
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
  el('a', { href: './?list' }, 'Sources'), el('h1', {}, file || 'No file'), explore,
  status, el('span', { class: 'space' }), new Rotation(state, file, isPaused).box, pauseButton,
  themeSwitch(() => views.forEach((view) => view.restyle()))),
el('main', {}, fold, above, alarms.box, history.box, plots, unseen));

// folded where it would fill the screen
const wide = matchMedia('(min-width: 721px)');
const unfold = () => {
  fold.open = wide.matches;
};
wide.addEventListener('change', unfold);
unfold();
fold.hidden = true;

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

/** A number for each axis of an image after the first two, together `plane` in the address. */
function planes(axes: Description['planes']): HTMLElement[] {
  const numbers = () => axes.map((_, at) => Number(state.get('plane').split(',')[at]) || 0);
  return axes.flatMap(([name, pixels], at) => {
    if (pixels < 2) return [];
    const field = el('input', { type: 'number', min: 0, max: pixels - 1, class: 'short', name: `plane-${at}` });
    field.addEventListener('change', () => {
      const number = Math.max(0, Math.min(pixels - 1, Math.round(Number(field.value)) || 0));
      state.set({ plane: numbers().map((before, axis) => (axis === at ? number : before)).join(',') });
    });
    shown.push(() => {
      field.value = String(numbers()[at]);
    });
    return [el('label', {}, `Plane along ${name}, of ${pixels}`, field)];
  });
}

const colours = () => picker('Colours', 'colours', plain(SCALES.slice(1)), SCALES[0]!);

function buildControls(found: Description, others: Source[]) {
  shown.length = 0;
  controls.replaceChildren();
  fold.hidden = false;
  if (found.plots.includes('image')) {
    controls.append(...planes(found.planes), colours());
    showState();
    return;
  }
  if (found.columns.length > 1) controls.append(picker('Column', 'column', plain(found.columns), `${found.columns[0]}`));
  if (found.windows.length > 1) controls.append(picker('Window', 'spw', found.windows, 'newest'));
  if (found.fields.length > 1) controls.append(picker('Field', 'field', found.fields, 'all'));
  controls.append(found.scans.length ? picker('Scan', 'scan', found.scans, 'all') : input('Scan', 'scan', [], 'all', 'short'));
  if (found.correlations.length > 1) controls.append(input('Correlation', 'corr', found.correlations, 'default', 'short'));
  if (!found.isCalibration) controls.append(input('Baseline', 'baseline', pairs(found.antennas.map(({ value }) => value)), 'cross'));
  if (found.antennas.length) controls.append(picker('Antenna', 'antenna', found.antennas, 'all'));
  const groups = ['correlation', 'antenna', 'baseline', 'field', 'scan', 'spw'].filter((by) => !(found.isCalibration && by === 'baseline'));
  controls.append(picker('A line for each', 'by', plain(groups.filter((by) => by !== page.lines)), page.lines));
  controls.append(input('Channels', 'chan', [], 'all', 'short'),
    picker('Flagged cells', 'flagged', [{ value: 'include', label: 'shown' }], 'left out'), colours());
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
  const selected = [...SELECTION, 'by', 'plane', 'with'].filter((name) => state.get(name)).map((name) => `${name} ${state.get(name)}`);
  chosen.textContent = ['Selection', selected.join(', ')].filter(Boolean).join(': ');
  plots.classList.toggle('wide', state.get('with') !== '' && state.get('compare') !== 'difference');
  const large = views.some((view) => view.kind.kind === state.get('large')) ? state.get('large') : '';
  plots.classList.toggle('large', large !== '');
  for (const view of views) view.box.hidden = large !== '' && view.kind.kind !== large;
}

// ---- begin ----------------------------------------------------------------------------------------------------------

let stream: Events | null = null;
/** Revision and rows of the newest look. */
let before: string | null = null;
let stale = false;
let rowsAtFirst: number | null = null;

/** The numbers of a growing file stand above the plots, those of another one only when it grows. */
function showStrip(look: Look) {
  rowsAtFirst ??= mainRows(look);
  if (look.kind !== 'live' && mainRows(look) === rowsAtFirst) return;
  if (strip.box.parentNode !== above) above.replaceChildren(strip.box);
  strip.show(look);
}

/** A connection that is back within this time is not spoken of. */
const LOST_MS = 1500;
/** Timer of a lost connection; 0 without one. */
let lost = 0;

/** Listens to the file with the rules of the address; without them when the server refuses them. */
function listen(withRules = true) {
  stream?.close();
  const rules = withRules ? rulesOf(state.all('alert')) : [];
  if (withRules) alarms.clear();
  history.close();
  const address = ['file', ...rules.map(() => 'alert')].map((name, at) => `${name}=${encodeURIComponent([file, ...rules][at]!)}`);
  stream = new Events(`live/events?${address.join('&')}`, {
    look: (look) => {
      newest = look;
      showStrip(look);
      history.box.hidden &&= look.kind !== 'live' && !rules.length;
      status.textContent = isPaused() ? 'paused' : look.kind === 'live' || look.open ? 'live' : '';
      const now = `${look.revision} ${mainRows(look)}`;
      // the plots that were asked for meanwhile show this look in most cases
      if (before === null && !isPaused()) for (const view of views) view.follow(look.revision, mainRows(look));
      else if (now !== before || stale) refresh();
      stale = views.some((view) => view.box.dataset.stale === 'true');
      before = now;
    },
    progress: ({ rows_used: used, rows: all }) => {
      if (all > 0 && used < all) status.textContent = `read ${Math.floor((100 * used) / all)} %`;
      else if (status.textContent.startsWith('read ')) status.textContent = newest?.kind === 'live' ? 'live' : '';
    },
    alert: (alert) => {
      alarms.alert(alert);
      history.box.hidden = false;
      if (alert.active) history.begin(file, alert.rule, alert.text, alert.since);
      else history.end(file, alert.rule, alert.time);
    },
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
        lost ||= window.setTimeout(() => {
          status.textContent = '';
          alarms.say('connection', 'The connection to the server is lost: the page tries again every few seconds');
        }, LOST_MS);
      } else if (lost) {
        clearTimeout(lost);
        lost = 0;
        alarms.say('refused', null);
        alarms.say('connection', null);
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

/** Plots of solutions: against time, or against frequency if they have one time; FPARAM has values, without amplitude and phase. */
function ofCalibration({ times, columns }: Description): string[] {
  const hasPhases = columns[0] !== 'FPARAM';
  for (const kind of hasPhases ? [] : ['amp_time', 'spectrum']) {
    if (!state.get(`${kind}.quantity`)) state.set({ [`${kind}.quantity`]: 'real' }, true);
  }
  const against = times && times[0] !== times[1] ? ['amp_time', ...(hasPhases ? ['phase_time'] : []), 'flag_time'] : [];
  return [...against, 'spectrum', 'flag_antenna', 'antennas'];
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
    const isMissing = error instanceof Refusal && error.status === 404;
    const isOut = error instanceof Refusal && error.status === 401;
    pauseButton.hidden = true;
    explore.hidden = isMissing || isOut;
    plots.replaceChildren(el('p', { class: 'message alarm', role: 'alert' }, isMissing ? `${file} is not among the sources.` : words(error)));
    if (!isOut) {
      plots.append(el('p', { class: 'message' }, isMissing ? el('a', { href: './?list' }, 'The list of sources')
        : el('a', { href: pageOf('explore', file) }, 'Look at it in the explorer')));
    }
    return;
  }
  above.replaceChildren(facts(found));
  if (found.missing) {
    plots.replaceChildren(el('p', { class: 'message' }, `${found.missing}. `, el('a', { href: pageOf('explore', file) }, 'Look at it in the explorer')));
    listen();
    return;
  }
  page.antennas = found.antennas.map(({ label }) => label);
  page.lines = found.isCalibration ? 'antenna' : 'correlation';
  const others = await files().catch((): Source[] => []);
  buildControls(found, others.filter((source) => source.file !== file && source.measurement_set !== false));
  const wanted = state.get('plots').split(',').filter(Boolean);
  const usual = found.isCalibration ? ofCalibration(found) : KINDS.map(({ kind }) => kind);
  const kinds = (wanted.length ? wanted : usual).flatMap((name) => KINDS.filter(({ kind }) => kind === name));
  page.kinds = kinds.filter(({ kind }) => !found.plots.length || found.plots.includes(kind));
  views = page.kinds.map((kind) => new View(kind, page));
  showState();
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
window.addEventListener('resize', () => views.forEach((view) => view.fit()));
document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === 'p' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) pauseButton.click();
});
showPaused();
void begin();
