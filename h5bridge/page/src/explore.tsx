/** The explorer: H5Web over the API of the server. */
import '@h5web/app/styles.css';
import './common.css';
import './explore.css';
import { App, H5GroveProvider } from '@h5web/app';
import { startTransition, useEffect, useMemo, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { count } from './format';
import { Events, files, hasPlots, json, mainRows, pageOf, words, type Source } from './server';
import { isDark, themeSwitch } from './theme';

const query = new URLSearchParams(location.search);
const file = query.get('file') ?? '';
const api = new URL('api', document.baseURI).href;
document.title = file ? `${file} - h5bridge` : 'h5bridge';

/** What a reader wants to see first, if the main table has one of these columns. */
const FIRST = ['DATA', 'CORRECTED_DATA', 'FLOAT_DATA', 'MODEL_DATA', 'CPARAM', 'FPARAM', 'map'];

/** Names and kinds of the members of a group; none if it cannot be read. */
async function members(path: string): Promise<{ name: string; kind: string }[]> {
  const address = `api/meta?file=${encodeURIComponent(file)}&path=${encodeURIComponent(path)}`;
  const found = await json<{ children?: { name: string; kind: string }[] }>(address).catch(() => null);
  return found?.children ?? [];
}

async function firstPath(): Promise<string> {
  const isNative = (await members('/')).some(({ name, kind }) => name === 'MAIN' && kind === 'group');
  const columns = isNative ? await members('/MAIN') : [];
  const drawn = FIRST.find((name) => columns.some((column) => column.name === name && column.kind === 'dataset'));
  return drawn ? `/MAIN/${drawn}` : '/';
}

/** The switch of the theme; `changed` is also told the first one. */
function Theme({ changed }: { changed: (dark: boolean) => void }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const made = themeSwitch(() => changed(isDark()));
    changed(isDark());
    place.current?.append(made);
    return () => made.remove();
  }, [changed]);
  return <span ref={place} />;
}

function Page() {
  const [source, setSource] = useState<Source>();
  const [path, setPath] = useState(query.get('path'));
  const [dark, setDark] = useState(false);
  const [error, setError] = useState('');
  const [rows, setRows] = useState<number>();
  const [shown, setShown] = useState<number>();
  const [refreshes, setRefreshes] = useState(0);
  const [state, setState] = useState('');

  useEffect(() => {
    files().then((found) => {
      const mine = found.find((one) => one.file === file);
      if (mine) {
        setSource(mine);
        if (path === null) void firstPath().then(setPath);
      } else setError(file ? `${file} is not among the sources.` : 'The address names no file.');
    }, (reason: unknown) => setError(words(reason)));
  }, []);

  const live = source?.kind === 'live';
  useEffect(() => {
    if (!live) return undefined;
    const events = new Events(`live/events?file=${encodeURIComponent(file)}`, {
      look: (look) => {
        setRows(mainRows(look));
        setShown((before) => before ?? mainRows(look));
      },
      end: (reason) => setState(reason),
    });
    return () => events.close();
  }, [live]);

  // H5Web forgets all that it read when these change, so that only a press of the button does it
  const keys = useMemo(() => [refreshes], [refreshes]);
  const refresh = () => {
    setShown(rows);
    startTransition(() => setRefreshes((before) => before + 1));
  };
  const grown = rows !== undefined && shown !== undefined ? rows - shown : 0;
  return (
    <>
      <header className="bar">
        <a href="./?list">Sources</a>
        <h1>{file}</h1>
        {source && hasPlots(source) && <a href={pageOf('ms', file)}>Plots</a>}
        <span className="space" />
        {live && <span className="faint" role="status">{state || 'live'}</span>}
        {grown > 0 && (
          <button type="button" onClick={refresh}>
            {count(grown)} new {grown === 1 ? 'row' : 'rows'}: refresh
          </button>
        )}
        <Theme changed={setDark} />
      </header>
      {error && <p className="message alarm" role="alert">{error}</p>}
      {source && path !== null && (
        <main className={dark ? 'viewer dark' : 'viewer'}>
          <H5GroveProvider url={api} filepath={file} resetKeys={keys}>
            <App initialPath={path} disableDarkMode />
          </H5GroveProvider>
        </main>
      )}
    </>
  );
}

createRoot(document.getElementById('root')!).render(<Page />);
