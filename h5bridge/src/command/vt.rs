//! `h5bridge vt serve` lets other programs read a vt store, and add to it, by the protocol of the
//! Python package cs.vt.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind as IoErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use ctds_hdf5::pack::{VtStore, open_vt_store, serve_vt};
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{Error, ErrorKind};
use serde_json::json;

use crate::args::Global;
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report;

/// Further clients wait until one of these ends its connection.
const MAX_CONNECTIONS: usize = 16;

const POLL: Duration = Duration::from_millis(20);

/// How long a client may take to receive what it has asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Command-line arguments of `h5bridge vt`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge vt serve /archive/store --unix /archive/vt.sock
  h5bridge ls 'vt+exec:ssh HOST h5bridge vt serve /archive/store#my.vt'")]
pub(crate) struct Args {
    #[command(subcommand)]
    step: Step,
}

/// Steps of `h5bridge vt`.
#[derive(Debug, clap::Subcommand)]
enum Step {
    /// Let other programs read a vt store and add to it, on standard input and output, a socket, or
    /// a port of this machine
    Serve(Serve),
}

/// Command-line arguments of `h5bridge vt serve`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge vt serve /archive/store --unix /archive/vt.sock
  h5bridge vt serve /archive/store --port 9999
  h5bridge vt serve blocks.h5 --unix /archive/vt.sock")]
struct Serve {
    /// The directory of the store, which has the directory data, or may be empty; or an HDF5 file
    /// with the blocks, NAME.h5, which is made if it does not exist
    store: PathBuf,
    /// Listen at a socket that is made here, which only its user can open
    #[arg(long, value_name = "PATH", conflicts_with = "port")]
    unix: Option<PathBuf>,
    /// Listen at a port of 127.0.0.1, where every user of this machine can connect; 0 selects any
    /// free one
    #[arg(long, value_name = "N")]
    port: Option<u16>,
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let Step::Serve(Serve { store, unix, port }) = args.step;
    let store = open_vt_store(store)?;
    let served = match (unix, port) {
        (Some(path), _) => serve_socket(&store, &path, global, out),
        (None, Some(port)) => serve_port(&store, port, global, out),
        (None, None) => serve_vt(&store, io::stdin(), out).map_err(Into::into),
    };
    // blocks are kept even if the connection has failed
    let closed = store.close();
    served?;
    closed?;
    Ok(Status::Done)
}

fn serve_socket(store: &VtStore, path: &Path, global: &Global, out: &mut impl Write) -> Result<()> {
    let stop = Stop::new(global.caller.as_ref())?;
    let listener = bind(path)?;
    let served = announce(&format!("vt+unix:{}", path.display()), global, out)
        .and_then(|()| listen(store, &stop, global, || Ok(listener.accept()?.0)));
    fs::remove_file(path)?;
    served
}

/// The socket gets its name when only its user can open it.
fn bind(path: &Path) -> Result<UnixListener> {
    if let Ok(found) = path.symlink_metadata()
        && (!found.file_type().is_socket() || UnixStream::connect(path).is_ok())
    {
        let what = if found.file_type().is_socket() { "another program serves here" } else { "not a socket" };
        return Err(Error::new(ErrorKind::Exists, format!("{}: {what}", path.display())).into());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".vt").rand_bytes(4).tempdir_in(parent)?;
    let unnamed = folder.path().join("s");
    let listener = UnixListener::bind(&unnamed)?;
    fs::set_permissions(&unnamed, Permissions::from_mode(0o600))?;
    fs::rename(&unnamed, path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn serve_port(store: &VtStore, port: u16, global: &Global, out: &mut impl Write) -> Result<()> {
    let stop = Stop::new(global.caller.as_ref())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
        IoErrorKind::AddrInUse => {
            Error::new(ErrorKind::Locked, format!("another program has port {port}; --port 0 takes a free one"))
        }
        _ => error.into(),
    })?;
    listener.set_nonblocking(true)?;
    announce(&listener.local_addr()?.to_string(), global, out)?;
    listen(store, &stop, global, || Ok(listener.accept()?.0))
}

fn announce(address: &str, global: &Global, out: &mut impl Write) -> Result<()> {
    match global.json {
        true => writeln!(out, "{}", json!({"event": "listening", "address": address}))?,
        false => writeln!(out, "{address}")?,
    }
    Ok(out.flush()?)
}

/// A stream of bytes to a client.
trait Connection: Send + Sized {
    /// Waits for its client from now on, for the time that is given for writing.
    fn prepare(&self) -> io::Result<()>;
    fn other_handle(&self) -> io::Result<Self>;
    /// Makes the thread end that reads from the connection.
    fn cut(&self);
    fn halves(&self) -> (impl Read, impl Write);
}

macro_rules! connection {
    ($stream:ty) => {
        impl Connection for $stream {
            fn prepare(&self) -> io::Result<()> {
                self.set_nonblocking(false)?;
                self.set_write_timeout(Some(PATIENCE))
            }

            fn other_handle(&self) -> io::Result<Self> {
                self.try_clone()
            }

            fn cut(&self) {
                let _ = self.shutdown(Shutdown::Both);
            }

            fn halves(&self) -> (impl Read, impl Write) {
                (self, self)
            }
        }
    };
}

connection!(UnixStream);
connection!(TcpStream);

/// Serves each connection in a thread until a signal, or the caller, stops it.
fn listen<S: Connection>(
    store: &VtStore,
    stop: &Stop,
    global: &Global,
    accept: impl Fn() -> io::Result<S>,
) -> Result<()> {
    let open: Mutex<Vec<(u64, S)>> = Mutex::default();
    std::thread::scope(|scope| {
        let mut number = 0;
        let ended = loop {
            if stop.is_set() {
                break Ok(());
            }
            let is_full = open.lock_unpoisoned().len() >= MAX_CONNECTIONS;
            let accepted = if is_full { Err(IoErrorKind::WouldBlock.into()) } else { accept() };
            let stream = match accepted {
                Ok(stream) => stream,
                // a client that went away before it was accepted concerns only itself
                Err(error) if is_passing(&error) => {
                    std::thread::sleep(POLL);
                    continue;
                }
                Err(error) => break Err(error.into()),
            };
            let Ok(handle) = stream.prepare().and_then(|()| stream.other_handle()) else { continue };
            number += 1;
            open.lock_unpoisoned().push((number, handle));
            let open = &open;
            scope.spawn(move || {
                let (source, target) = stream.halves();
                if let Err(error) = serve_vt(store, source, target)
                    && !global.quiet
                    && global.caller.is_none()
                {
                    report::warning(&format!("connection {number} has ended: {error}"));
                }
                stream.cut();
                open.lock_unpoisoned().retain(|(other, _)| *other != number);
            });
        };
        open.lock_unpoisoned().iter().for_each(|(_, stream)| stream.cut());
        ended
    })
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), IoErrorKind::WouldBlock | IoErrorKind::Interrupted | IoErrorKind::ConnectionAborted)
}
