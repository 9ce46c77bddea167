//! `debora serve`: live experiments over HTTP, until it is asked to stop.

use std::io::IsTerminal as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{Common, ServeArgs};
use crate::commands::print;
use crate::service::clock;
use crate::service::http::server::{self, ConnectionRules};
use crate::service::http::webhooks::watcher::Watcher;
use crate::service::http::{AppState, Shared};
use crate::service::node::StoreStart;
use crate::service::request::Refusal;
use crate::service::writer::Service;
use crate::store::Location;

/// How often what is due is imputed.
const TICK: Duration = Duration::from_secs(1);

/// After this many answers a thread looks for new requests. With tokio's 61 it would write all answers of a group first, while
/// the writer waits for the next requests of clients that have theirs. From 8 to 16 the rate is the same.
const ANSWERS_A_LOOK: u32 = 12;

pub fn serve(args: &ServeArgs, common: &Common) -> Result<bool> {
    if common.out.is_some() || common.force {
        bail!("serve writes no reports; leave out --out and --force");
    }
    log_to_stderr(args.log);
    let mut addresses = args.listen.to_socket_addrs();
    let address = addresses.as_mut().ok().and_then(Iterator::next);
    let address = address.with_context(|| {
        format!(
            "--listen {:?} is not an address; give host and port, such as 127.0.0.1:8080",
            args.listen
        )
    })?;
    // Before the store, which is made if it is missing: a taken port must not leave one behind.
    let listener = std::net::TcpListener::bind(address);
    let listener = listener.with_context(|| {
        format!("cannot listen on {address}; is something else listening there?")
    })?;
    let location = Location::parse(&args.store);
    let service = Service::start(location, clock::system())?;
    let result = check_keys(&service, address).and_then(|keyless| {
        if keyless {
            tracing::warn!(
                "there are no API keys: everyone on this machine is admin. A proxy in front needs keys, whatever headers it \
                 adds; make one with `debora keys add NAME --role admin` and the --store of this server"
            );
        }
        // One core is the writer's: with a handler on each, it waits for its turn and everyone for it.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = common.threads.map_or((cores - 1).max(1), usize::from);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(threads)
            .event_interval(ANSWERS_A_LOOK)
            .enable_all();
        let runtime = builder.build().context("cannot start threads")?;
        runtime.block_on(run(&service, listener, args, common.json))
    });
    let stopped = service.stop();
    // What ended the server comes first; a store that is not one file is said in any case.
    if let (Err(_), Err(error)) = (&result, &stopped) {
        tracing::error!(detail = format!("{error:#}"), "the store is not one file");
    }
    result.and(stopped).map(|()| true)
}

/// Lines of this program alone: what libraries write may hold what is secret. Standard output is for the address.
fn log_to_stderr(level: LevelFilter) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let own = Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    tracing_subscriber::registry()
        .with(lines.with_filter(own))
        .init();
}

/// Whether there are no keys at all. Then everyone who reaches the service is its admin: that must be nobody else.
fn check_keys(service: &Service, address: SocketAddr) -> Result<bool> {
    let keys = service.read(|store| store.keys())?;
    if address.ip().to_canonical().is_loopback() || keys.iter().any(|key| key.revoked_at.is_none())
    {
        return Ok(keys.is_empty());
    }
    let store = &service.location;
    bail!(
        "{address} can be reached by others, and {store} has no API key, without which everyone is admin; create one with \
         `debora keys add NAME --role admin` and the same --store, or listen on 127.0.0.1"
    )
}

/// Lets the process open as many files as it may have connections, as far as the system allows.
fn raise_file_limit(sockets: u64) {
    // The store's files and the readers' connections to it.
    let needed = sockets + 128;
    let limits = getrlimit(Resource::Nofile);
    let granted = limits.maximum.unwrap_or(u64::MAX).min(needed);
    if limits.current.unwrap_or(u64::MAX) < granted {
        let raised = Rlimit {
            current: Some(granted),
            ..limits
        };
        // Many systems start programs with 1,024, which a server beyond its limit of connections would reach first.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    if granted < needed {
        tracing::warn!(
            "{granted} files may be open, and --connections needs {needed}; raise the limit (ulimit -n), or lower --connections"
        );
    }
}

async fn run(
    service: &Arc<Service>,
    listener: std::net::TcpListener,
    args: &ServeArgs,
    json: bool,
) -> Result<()> {
    // Before the address is printed: whoever reads it may stop us at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let (url, store) = (format!("http://{address}"), service.location.to_string());
    let StoreStart {
        identity,
        incarnation,
    } = &service.start;
    tracing::info!(store, identity, incarnation, "started");
    print(&if json {
        let line = json!({ "address": url, "store": store, "identity": identity, "incarnation": incarnation });
        format!("{line}\n")
    } else {
        format!(
            "listening on {url}, store {store}, identity {identity}, incarnation {incarnation}\n"
        )
    })?;
    let app = Shared::new(Arc::clone(service), Duration::from_secs(args.timeout));
    // On an address that others reach, a store that loses its keys must not let everyone in.
    if !address.ip().to_canonical().is_loopback() {
        app.access.need_keys();
    }
    let watcher = Watcher::start(service)?;
    let ticking = tokio::spawn(tick(Arc::clone(&app)));
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            failure = ticking => Some(failure),
        }
    };
    // Without a writer nothing can be served, so the end of its ticking ends the server, too.
    let rules = ConnectionRules {
        connections: args.connections,
        grace: Duration::from_secs(args.grace),
    };
    raise_file_limit(server::sockets_max(rules));
    let mut failed = false;
    let end = async { failed = stopped.await.is_some() };
    server::serve(listener, app, rules, end).await;
    // Before the store is closed, which it reads.
    watcher.stop().await;
    if failed {
        bail!(
            "the writer has ended, which is a bug: what was answered is durable; see the log, and start the server again"
        );
    }
    tracing::info!("stopped as asked");
    Ok(())
}

/// Imputes what is due, every second, as long as there is a writer.
async fn tick(app: AppState) {
    let mut interval = tokio::time::interval(TICK);
    // A tick that took long is not made up for by several at once.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut more = false;
    loop {
        // What is left of a long backlog follows at once: requests are served between two ticks all the same.
        if !more {
            interval.tick().await;
        }
        app.sample();
        let ticked = app.service.tick().await;
        more = ticked.as_ref().is_ok_and(|ticked| ticked.more);
        match ticked {
            Ok(ticked) => drop(app.metrics.imputed.inc_by(ticked.imputed)),
            Err(Refusal::Stopping) => return,
            Err(Refusal::Store { detail }) => tracing::error!(detail, "cannot impute what is due"),
            Err(refusal) => tracing::error!(%refusal, "cannot impute what is due"),
        }
    }
}
