//! `serve` shows HDF5 files and MeasurementSets in a browser.

mod api;
mod assets;
mod board;
mod browser;
mod grove;
mod guard;
mod live;
mod live_file;
mod metrics;
mod news;
mod open_files;
mod pages;
mod places;
mod quarantine;
mod query;
mod reply;
mod server;
mod shared;
mod sources;
mod stall;
mod tables;
mod work;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use ctds_hdf5::{Error, ErrorKind};
use ms_look::Rule;
use serde_json::json;

use self::browser::Opener;
use self::grove::Limits;
use self::guard::Guard;
use self::live::Lives;
use self::metrics::Metrics;
use self::places::Places;
use self::quarantine::Quarantine;
use self::server::Server;
use self::shared::Shared;
use self::sources::Sources;
use self::tables::Tables;
use self::work::{Memory, Pool};
use crate::args::{Global, size};
use crate::exit::Status;
use crate::interrupt::Stop;
use crate::report;

/// First port that is tried if none is given.
const PORT: u16 = 5380;

/// Number of ports that are tried.
const PORTS: u16 = 10;

/// How long a shutdown waits until answers that were begun are complete.
const PATIENCE: Duration = Duration::from_secs(5);

const SIGNAL_PAUSE: Duration = Duration::from_millis(50);

/// Command-line arguments of `h5bridge serve`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge serve my.h5 --open
  h5bridge serve live.h5 my.ms
  h5bridge serve /data/archive --port 8080
From another machine, by ssh; then open the address that serve prints:
  ssh -L 5380:127.0.0.1:5380 HOST")]
pub(crate) struct Args {
    /// HDF5 files (live or not), tables, or directories, which are listed on request, four levels
    /// deep
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Port to listen at; 0 selects any free one [default: the first free one from 5380 to 5389]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Address of this machine to listen at. With an address other than 127.0.0.1 or ::1 other
    /// machines can connect, without encryption
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Accept requests of every user of this machine without a token; refused if other machines can
    /// connect
    #[arg(long)]
    no_token: bool,
    /// A further host name by which browsers reach this server, such as that of a proxy or
    /// localhost:8080
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// An origin whose pages may send requests, such as <https://example.org>
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<String>,
    /// Serve all addresses below this path, such as /h5bridge
    #[arg(long, value_name = "/P", default_value = "", hide_default_value = true, value_parser = base_path)]
    base_path: String,
    /// Refuse answers that are larger than this: 64M, 1G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = size)]
    max_response: u64,
    /// Memory for answers that clients have not read yet, of all clients together, in bytes: 512M,
    /// 2G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = size)]
    max_memory: u64,
    /// A file with alert rules for all live HDF5 files (to which programs append rows), one on each
    /// line, such as "no rows for 30 s"; # begins a comment. docs/reference/serve.md lists the
    /// rules
    #[arg(long, value_name = "FILE")]
    alerts: Option<PathBuf>,
    /// Answer `/metrics`, for Prometheus, and follow all live files for it
    #[arg(long)]
    metrics: bool,
    /// Number of threads that read and decode [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The path begins with a slash and does not end with one.
fn base_path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    let is_path = path.is_empty() || path.starts_with('/') && !path.starts_with("//") && path.chars().all(is_plain);
    if is_path { Ok(path.to_owned()) } else { Err("expected a path such as /h5".to_owned()) }
}

pub(crate) fn run(args: Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let stop = Stop::new(global.caller.as_ref())?;
    let rules = args.alerts.as_deref().map(Rule::read_file).transpose()?.unwrap_or_default();
    let sources = Sources::new(&args.sources)?;
    let listener = bind(&args)?;
    let local = listener.local_addr()?;
    let token = args.token(local)?;
    let shared = args.shared(sources, rules)?;
    let guard = Guard::new(token.as_deref(), local.port(), &args.allow_host, &args.allow_origin, &args.base_path);
    let server = Arc::new(Server {
        guard,
        shared: Arc::clone(&shared),
        lives: Lives::default(),
        places: Arc::new(Places::default()),
        metrics: args.metrics.then(Metrics::default),
    });
    let url = guard::address(&shown_host(local, &args.allow_host), &args.base_path, token.as_deref());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let listener = {
        let _context = runtime.enter();
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)?
    };
    announce(&url, local, global, out)?;
    let opener = args.open.then(|| Opener::open(&url)).transpose();
    let _opener = opener.unwrap_or_else(|error| {
        report::warning(&format!("the browser was not opened: {error:#}"));
        None
    });
    runtime.block_on(async {
        let accepting = tokio::spawn(server.run(listener));
        while !stop.is_set() && !accepting.is_finished() {
            tokio::time::sleep(SIGNAL_PAUSE).await;
        }
    });
    // clients are cut off; work that was begun is ended without its result
    runtime.shutdown_background();
    let has_ended = shared.pool.close(PATIENCE);
    if global.json {
        let status = Status::Done;
        let document = json!({
            "event": "end", "reason": "interrupted", "status": status.name(), "code": status.code(), "warnings": [],
        });
        writeln!(out, "{document}")?;
        out.flush()?;
    }
    if !has_ended && global.caller.is_none() {
        // libhdf5 does not end well while another thread is in it
        drop(_opener);
        signal_hook::low_level::exit(Status::Done.code().into());
    }
    Ok(Status::Done)
}

impl Args {
    /// `None` with `--no-token`, which is a `Usage` error if other machines can reach the address.
    fn token(&self, local: SocketAddr) -> Result<Option<String>> {
        if self.no_token && !local.ip().is_loopback() {
            let message = "--no-token is for 127.0.0.1 and ::1 only: other machines can reach this address";
            return Err(Error::new(ErrorKind::Usage, message).into());
        }
        if self.no_token { Ok(None) } else { guard::new_token().map(Some) }
    }

    fn shared(&self, sources: Sources, rules: Vec<Rule>) -> Result<Arc<Shared>> {
        let processors = || std::thread::available_parallelism().map_or(2, usize::from);
        let threads = self.threads.unwrap_or_else(processors).max(1);
        Ok(Arc::new(Shared {
            sources,
            tables: Tables::default(),
            quarantine: Quarantine::default(),
            // while one decodes, another one may wait for the lock of libhdf5
            pool: Pool::new(threads.saturating_mul(2))?,
            memory: Memory::new(self.max_memory),
            limits: Limits { response: self.max_response },
            rules,
        }))
    }
}

/// Warns if other machines can reach the server.
fn announce(url: &str, local: SocketAddr, global: &Global, out: &mut impl Write) -> Result<()> {
    if global.json {
        writeln!(out, "{}", json!({"event": "listening", "url": url, "port": local.port()}))?;
    } else {
        writeln!(out, "{url}")?;
    }
    out.flush()?;
    if !local.ip().is_loopback() && global.caller.is_none() {
        report::warning("other machines can reach this address, and nothing is encrypted; ssh -L is better");
    }
    Ok(())
}

/// The port of `--port`, or the first free one of the default ports.
fn bind(args: &Args) -> Result<TcpListener> {
    let ports = match args.port {
        Some(port) => port..=port,
        None => PORT..=PORT + (PORTS - 1),
    };
    let mut last = None;
    for port in ports {
        let host = args.host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (host, port)
            .to_socket_addrs()
            .map_err(|error| Error::new(ErrorKind::Usage, format!("--host {}: {error}", args.host)))?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        match TcpListener::bind(&*addresses) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => last = Some(port),
            Err(error) => return Err(error).with_context(|| format!("{}:{port}", args.host)),
        }
    }
    let message = match (args.port, last) {
        (Some(port), _) => format!("another program has port {port}; --port 0 takes a free one"),
        _ => format!("other programs have ports {PORT} to {}; --port 0 takes a free one", PORT + PORTS - 1),
    };
    Err(Error::new(ErrorKind::Locked, message).into())
}

/// Host and port as they appear in the address that is printed.
fn shown_host(local: SocketAddr, hosts: &[String]) -> String {
    match hosts.first() {
        Some(host) if !local.ip().is_loopback() && host.contains(':') => host.clone(),
        Some(host) if !local.ip().is_loopback() => format!("{host}:{}", local.port()),
        _ if local.ip().is_unspecified() => {
            let ip =
                if local.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]) };
            SocketAddr::new(ip, local.port()).to_string()
        }
        _ => local.to_string(),
    }
}
