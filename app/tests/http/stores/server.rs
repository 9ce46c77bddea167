//! What only a PostgreSQL server can do: be reached with TLS or without, and end the transaction of a node that stopped.

use std::env;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use debora_cli::store::{Location, Purpose};

use super::{Place, outcome, served, write};
use crate::kit::binary::debora;
use crate::kit::schema::schema;

fn variable(name: &str) -> String {
    env::var(name).expect("run the tests as `scripts/with-postgres cargo test`")
}

/// A file of certificates in an address.
fn roots(name: &str) -> String {
    let folder = variable("DEBORA_TEST_POSTGRES_ROOTS");
    format!("&sslrootcert={folder}/{name}.pem")
}

/// The address of the test server on loopback, for a user and with what follows.
fn address(user: &str, host: &str, rest: &str) -> String {
    let port = variable("DEBORA_TEST_POSTGRES_PORT");
    let password = variable("DEBORA_TEST_POSTGRES_PASSWORD");
    format!("postgres://{user}:{password}@{host}:{port}/postgres?connect_timeout=5{rest}")
}

/// Opens a store, and asks the server whether that connection is encrypted; or why it was not opened.
fn opened(user: &str, host: &str, rest: &str) -> Result<bool, String> {
    let place = Place::postgres();
    let Location::Postgres(schema) = &place.location else {
        panic!("a server")
    };
    let (_, name) = schema.rsplit_once("%3D").unwrap();
    let rest = format!("{rest}&application_name={name}&options=-csearch_path%3D{name}");
    let store = Location::parse(&address(user, host, &rest)).open(Purpose::Serve);
    let _store = store.map_err(|error| format!("{error:#}"))?;
    let mut client = postgres::Client::connect(schema, postgres::NoTls).unwrap();
    let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = $1";
    Ok(client.query_one(sql, &[&name]).unwrap().get(0))
}

fn refusal(user: &str, host: &str, rest: &str) -> String {
    let why = opened(user, host, rest).expect_err(rest);
    assert!(why.contains(&format!("postgres://{host}:")), "{why}");
    assert!(
        !why.contains(&variable("DEBORA_TEST_POSTGRES_PASSWORD")),
        "{why}"
    );
    why
}

#[test]
fn a_server_is_reached_as_its_address_says() {
    let (right, wrong) = (roots("ca"), roots("other"));
    for (mode, roots) in [
        ("", ""),
        ("&sslmode=allow", ""),
        ("&sslmode=prefer", ""),
        ("&sslmode=prefer", &*right),
        ("&sslmode=require", ""),
        ("&sslmode=require", &right),
        ("&sslmode=verify-ca", &right),
        ("&sslmode=verify-full", &right),
    ] {
        let rest = format!("{mode}{roots}");
        assert_eq!(opened("encrypted", "localhost", &rest), Ok(true), "{rest}");
    }
    for (mode, roots) in [
        ("", ""),
        ("&sslmode=disable", ""),
        ("&sslmode=allow", ""),
        ("&sslmode=prefer", ""),
        // What cannot be trusted is not spoken to, and a plain connection is as good as that.
        ("&sslmode=prefer", &*wrong),
    ] {
        let rest = format!("{mode}{roots}");
        assert_eq!(opened("plain", "localhost", &rest), Ok(false), "{rest}");
    }
    // A name that the certificate does not have matters to the strictest mode alone.
    let rest = format!("&sslmode=verify-ca{right}");
    assert_eq!(opened("encrypted", "127.0.0.1", &rest), Ok(true));
}

/// A server counts, and logs, connections whose clients went without a word.
#[test]
fn a_store_that_is_closed_takes_its_leave() {
    let mut client =
        postgres::Client::connect(&variable("DEBORA_TEST_POSTGRES"), postgres::NoTls).unwrap();
    for (name, rest) in [
        ("left_encrypted", "&sslmode=require"),
        ("left_plain", "&sslmode=disable"),
    ] {
        client
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .unwrap();
        let user = &name["left_".len()..];
        let address = address(user, "localhost", rest).replace("/postgres?", &format!("/{name}?"));
        drop(Location::parse(&address).open(Purpose::Serve).unwrap());
        let sql = "SELECT sessions, sessions_abandoned FROM pg_stat_database WHERE datname = $1";
        let begun = Instant::now();
        // Counted when the server's process has ended.
        let (sessions, abandoned) = loop {
            let row = client.query_one(sql, &[&name]).unwrap();
            let counts: (i64, i64) = (row.get(0), row.get(1));
            let one = "SELECT FROM pg_stat_activity WHERE datname = $1";
            if counts.0 > 0 && client.query(one, &[&name]).unwrap().is_empty() {
                break counts;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{counts:?}");
            thread::sleep(Duration::from_millis(10));
        };
        assert_eq!((sessions, abandoned), (1, 0), "{name}");
        client
            .batch_execute(&format!("DROP DATABASE {name}"))
            .unwrap();
    }
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused_with_the_remedy() {
    let (right, wrong) = (roots("ca"), roots("other"));
    for mode in ["require", "verify-ca", "verify-full"] {
        let rest = format!("&sslmode={mode}{wrong}");
        let why = refusal("encrypted", "localhost", &rest);
        assert!(
            why.contains(&format!("with sslmode={mode}"))
                && why.contains("does not lead to a root; sslrootcert must"),
            "{why}"
        );
    }
    let rest = format!("&sslmode=verify-full{right}");
    let why = refusal("encrypted", "127.0.0.1", &rest);
    assert!(
        why.contains("for another name; use the name that the certificate has"),
        "{why}"
    );
    // Of a wrong password, the refusal of the connection without TLS says nothing.
    let right = address("encrypted", "localhost", "");
    let password = variable("DEBORA_TEST_POSTGRES_PASSWORD");
    let store = Location::parse(&right.replace(&password, "wrong")).open(Purpose::Serve);
    let why = format!("{:#}", store.err().unwrap());
    assert!(
        why.contains("with sslmode=prefer (first with TLS: password authentication failed"),
        "{why}"
    );
    // The server refuses, and so do we, to do otherwise than asked.
    refusal("encrypted", "localhost", "&sslmode=disable");
    refusal("plain", "localhost", "&sslmode=require");
    let why = refusal(
        "encrypted",
        "localhost",
        "&sslmode=require&sslrootcert=/none",
    );
    assert!(why.contains("cannot read the roots in /none"), "{why}");
}

#[test]
fn what_an_address_says_of_tls_must_make_sense() {
    for (rest, words) in [
        (
            "&sslmode=full",
            "\"full\" is not one of disable, allow, prefer, require",
        ),
        (
            "&sslmode=require&sslrootcert=system",
            "give sslmode=verify-full",
        ),
        (
            "&sslcert=client.pem",
            "has sslcert, which debora does not have; leave it out",
        ),
    ] {
        let why = opened("encrypted", "localhost", rest).expect_err(rest);
        assert!(why.contains(words), "{why}");
    }
}

/// A socket in the file system is not encrypted, whatever is asked.
#[test]
fn a_socket_needs_no_certificate() {
    let url = format!("{}&sslmode=verify-full", schema("socket"));
    Location::parse(&url).open(Purpose::Serve).unwrap();
}

#[test]
fn variables_say_what_the_address_does_not() {
    let folder = variable("DEBORA_TEST_POSTGRES_ROOTS");
    let said = |variables: &[(&str, &str)], rest: &str| {
        // Other tests have stores where an address looks by default.
        let nowhere = format!("&options=-csearch_path%3Dnowhere{rest}");
        let url = address("encrypted", "localhost", &nowhere);
        let output = debora(&["keys", "list", "--store", &url])
            .env("HOME", &folder)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    // Without a store there is nothing to list: a server that says so was reached.
    let reached = |words: &str| words.contains("it has no tables yet");
    let file = |name: &str| format!("{folder}/{name}.pem");
    let full = ("PGSSLMODE", "verify-full");
    assert!(said(&[full], "").contains("give sslrootcert=FILE"));
    assert!(reached(&said(&[full, ("PGSSLROOTCERT", &file("ca"))], "")));
    let words = said(&[full, ("PGSSLROOTCERT", &file("other"))], "");
    assert!(words.contains("does not lead to a root"), "{words}");
    let disabled = [("PGSSLMODE", "disable")];
    assert!(reached(&said(&disabled, "&sslmode=require")));
    let system = "&sslrootcert=system";
    assert!(reached(&said(&[("SSL_CERT_FILE", &file("ca"))], system)));
    let words = said(&[("SSL_CERT_FILE", &file("other"))], system);
    assert!(words.contains("with sslmode=verify-full"), "{words}");
}

/// What a server without TLS says to one who asks for it, and what it is then sent.
fn without_tls() -> (u16, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut asked = [0; 8];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(asked, [0, 0, 0, 8, 4, 210, 22, 47], "a request for TLS");
        stream.write_all(b"N").unwrap();
        let mut heard = vec![0; 512];
        let length = stream.read(&mut heard).unwrap();
        heard.truncate(length);
        heard
    });
    (port, heard)
}

#[test]
fn a_server_without_tls_is_refused_by_a_mode_that_requires_it() {
    for (mode, goes_on) in [
        ("sslmode=require".to_owned(), false),
        (format!("sslmode=verify-full{}", roots("ca")), false),
        ("sslmode=prefer".to_owned(), true),
    ] {
        let (port, heard) = without_tls();
        let url = format!("postgres://ann:sesame@127.0.0.1:{port}/db?{mode}");
        let error = Location::parse(&url).open(Purpose::Serve).err().unwrap();
        let why = format!("{error:#}");
        assert_eq!(!why.contains("set ssl = on"), goes_on, "{mode}: {why}");
        let heard = heard.join().unwrap();
        assert_eq!(
            !heard.is_empty(),
            goes_on,
            "{mode}: nothing is sent in plain"
        );
    }
}

/// A node that stops in the middle of a transaction, as a frozen machine does, holds up the others for seconds only.
#[test]
fn a_frozen_node_loses_its_lock_and_its_transaction() {
    let place = Place::postgres();
    let mut frozen = served(&place);
    frozen.begin().unwrap();
    frozen.lock("a").unwrap().unwrap();
    frozen.add_outcomes("a", &[outcome(1, 0.5)]).unwrap();
    let begun = Instant::now();
    let mut other = place.open(Purpose::Serve);
    write(&mut other, |other| {
        other.lock("a").unwrap().unwrap();
        other.add_outcomes("a", &[outcome(2, 0.5)]).unwrap();
    });
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(7), "{waited:?}");
    frozen.commit().unwrap_err();
    assert_eq!(other.outcomes("a", 0, 9).unwrap(), [outcome(2, 0.5)]);
    write(&mut frozen, |frozen| {
        frozen.add_outcomes("a", &[outcome(1, 0.5)]).unwrap()
    });
    assert_eq!(other.outcomes("a", 0, 9).unwrap().len(), 2);
}

/// A way to the server on which, once it is blocked, nothing comes back.
fn blockable() -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let blocked = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&blocked);
    thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let server = format!("127.0.0.1:{}", variable("DEBORA_TEST_POSTGRES_PORT"));
        let mut far = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut to));
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = far.read(&mut bytes) {
            near.write_all(&bytes[..length]).unwrap();
            while stop.load(Ordering::SeqCst) {
                thread::park();
            }
        }
    });
    (port, blocked)
}

/// The same for a node that stops while it is sent more than the network holds: the server is not idle, it cannot get rid of it.
#[test]
fn a_node_that_stops_reading_loses_its_lock_and_its_transaction() {
    let place = Place::postgres();
    let mut other = served(&place);
    let outcomes: Vec<_> = (1..=100_000).map(|round| outcome(round, 0.5)).collect();
    write(&mut other, |other| {
        other.add_outcomes("a", &outcomes).unwrap();
    });
    let Location::Postgres(url) = &place.location else {
        panic!("a server")
    };
    let (_, name) = url.rsplit_once("%3D").unwrap();
    let (port, blocked) = blockable();
    let password = variable("DEBORA_TEST_POSTGRES_PASSWORD");
    let url = format!(
        "postgres://plain:{password}@127.0.0.1:{port}/postgres?sslmode=disable&options=-csearch_path%3D{name}"
    );
    let mut frozen = Location::parse(&url).open(Purpose::Serve).unwrap();
    frozen.begin().unwrap();
    frozen.lock("a").unwrap().unwrap();
    blocked.store(true, Ordering::SeqCst);
    thread::spawn(move || frozen.outcomes("a", 0, usize::MAX));
    write(&mut other, |other| other.lock("a").unwrap().unwrap());
}
