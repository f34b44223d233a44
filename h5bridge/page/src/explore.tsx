/** The explorer: H5Web over the API of the server. */
import '@h5web/app/styles.css';
import './common.css';
import './explore.css';
import { App, H5GroveProvider } from '@h5web/app';
import { startTransition, useEffect, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { count } from './format';
import { Events, files, hasPlots, mainRows, pageOf, words, type Source } from './server';

const query = new URLSearchParams(location.search);
const file = query.get('file') ?? '';
const api = new URL('api', document.baseURI).href;
document.title = file ? `${file} - h5bridge` : 'h5bridge';

function Page() {
  const [source, setSource] = useState<Source>();
  const [error, setError] = useState('');
  const [rows, setRows] = useState<number>();
  const [shown, setShown] = useState<number>();
  const [refreshes, setRefreshes] = useState(0);
  const [state, setState] = useState('');

  useEffect(() => {
    files().then((found) => {
      const mine = found.find((one) => one.file === file);
      if (mine) setSource(mine);
      else setError(file ? `${file} is not among the sources.` : 'The address names no file.');
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
      </header>
      {error && <p className="message alarm" role="alert">{error}</p>}
      {source && (
        <div className="viewer">
          <H5GroveProvider url={api} filepath={file} resetKeys={keys}>
            <App initialPath={query.get('path') ?? '/'} />
          </H5GroveProvider>
        </div>
      )}
    </>
  );
}

createRoot(document.getElementById('root')!).render(<Page />);
