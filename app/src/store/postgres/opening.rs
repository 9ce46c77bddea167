//! How a server is reached, and its tables made.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::super::{Purpose, schema};
use super::client::Client;
use super::tls::TlsRules;

/// How long a server may take to answer a new connection, or a sent packet, before it counts as lost.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// What every connection sets. A statement takes milliseconds, but may wait for the lock of another node; a second process to
/// share it with would take longer to start than it does.
const SETTINGS: &str =
    "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '30s';
    SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning;";

/// A node that stops in the middle of a transaction, or its machine, loses it before those who wait for its locks give up. The
/// second is for one that stops while it is sent something: the server is not idle then, and nothing else ends its waiting.
const WRITER_SETTINGS: &str =
    "SET idle_in_transaction_session_timeout = '5s'; SET tcp_user_timeout = '5s'";

/// Even a mistake of ours cannot write through a reader's connection. It holds no lock that others wait for, and a backup may
/// pause to write what it has read.
const READER_SETTINGS: &str =
    "SET default_transaction_read_only = on; SET idle_in_transaction_session_timeout = '30s'";

/// Nodes that start together make the tables one after the other ("debora" in ASCII).
const MAKING_LOCK: i64 = 0x6465_626f_7261;

/// Where a server is, and how it is reached.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls: TlsRules,
}

/// Reads an address. The reason of a failure may quote what is secret, so it is left out.
pub fn parse(url: &str) -> Result<Address> {
    let (url, tls) = TlsRules::take_from(url)?;
    // What the address itself says wins over what follows. The client also reads host=.. user=.., of which TLS is not taken out.
    let config = url.contains("://").then(|| url.parse::<Config>().ok());
    let Some(mut config) = config.flatten() else {
        bail!(
            "the address of the PostgreSQL store cannot be read; give postgres://USER:PASSWORD@HOST:PORT/DATABASE, with characters other than letters and digits in the password written as %XX"
        )
    };
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("debora");
    }
    Ok(Address { config, tls })
}

/// An address without what may be secret in it.
pub fn redact(address: &Address) -> String {
    let config = &address.config;
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
        let port = ports.get(place).or(ports.first());
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        match host {
            Host::Tcp(name) => format!("{name}{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}{port}", path.display()),
        }
    });
    let hosts: Vec<_> = hosts.collect();
    format!(
        "postgres://{}/{}",
        hosts.join(","),
        config.get_dbname().unwrap_or_default()
    )
}

/// A connection.
pub fn connect(address: &Address, purpose: Purpose) -> Result<Client> {
    let connected = address.tls.connect(&address.config).and_then(|mut client| {
        client.batch_execute(SETTINGS)?;
        client.batch_execute(match purpose {
            Purpose::Read => READER_SETTINGS,
            Purpose::Serve | Purpose::Write => WRITER_SETTINGS,
        })?;
        Ok(client)
    });
    connected.with_context(|| format!("cannot connect to {}", redact(address)))
}

/// Looks at the version of the tables, and makes them if they are to be served.
pub fn prepare(client: &mut Client, purpose: Purpose) -> Result<()> {
    if purpose == Purpose::Serve {
        // Answers say that something is durable: on a server without fsync that would be a lie.
        let fsync: String = client.query_one("SHOW fsync")?.try_get(0)?;
        ensure!(
            fsync == "on",
            "its fsync is {fsync}, so what it commits is not on the disk; set fsync = on"
        );
        return make_tables(client);
    }
    ensure!(
        is_made(client)?,
        "it has no tables yet; `debora serve` creates them"
    );
    Ok(())
}

/// Makes the tables, unless they are there.
fn make_tables(client: &mut Client) -> Result<()> {
    // If it fails, it ends with the connection.
    client.batch_execute("BEGIN")?;
    // Released with the transaction, however that ends.
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING_LOCK])?;
    // Under the lock: another node may have made them in the meantime.
    if !is_made(client)? {
        let made = client.batch_execute(&schema::for_postgres(schema::TABLES));
        made.context("cannot create the tables; give debora a database of its own")?;
    }
    Ok(client.batch_execute("COMMIT")?)
}

/// Whether there are tables. An error if they are not ours, or of another version.
pub fn is_made(client: &mut Client) -> Result<bool> {
    // `to_regclass` is NULL where there is no such table; to select from it would be an error that ends the transaction.
    let there: bool = client
        .query_one("SELECT to_regclass('meta') IS NOT NULL")?
        .try_get(0)?;
    if !there {
        return Ok(false);
    }
    let version = client.query_one("SELECT max(value) FROM meta WHERE name = 'schema'");
    let version: Option<i64> = version
        .and_then(|row| row.try_get(0))
        .context("its table meta belongs to another program; give debora a database of its own")?;
    schema::check(version)?;
    Ok(true)
}
