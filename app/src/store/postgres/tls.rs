//! TLS to a server: `sslmode` and `sslrootcert` of an address mean what they mean to libpq.
//!
//! | mode | encrypted | the certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `allow` | if the server refuses a plain connection | checked if there are roots |
//! | `prefer`, the default | unless the server cannot | checked if there are roots |
//! | `require` | always | checked if there are roots |
//! | `verify-ca` | always | leads to one of the roots |
//! | `verify-full` | always | leads to one of the roots, and is the host's |
//!
//! Roots are the certificates in the file `sslrootcert`, by default `~/.postgresql/root.crt` if that is there. A socket in the
//! file system is never encrypted: nobody is between its ends.

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, Error};

use super::client::Client;
use super::handshake::{HandshakeError, Tls, Verifier};

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: [(&str, TlsMode); 6] = [
    ("disable", TlsMode::Disable),
    ("allow", TlsMode::Allow),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

/// The word for the operating system's roots, in the place of a file.
const SYSTEM: &str = "system";

/// Where operating systems keep them: Debian, Fedora, Alpine and macOS.
const SYSTEM_ROOTS: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// What an address says of TLS.
#[derive(Clone, Debug)]
pub struct TlsRules {
    mode: TlsMode,
    roots: Option<String>,
}

impl TlsRules {
    /// Takes what is said of TLS out of an address: the client knows half of the modes, and refuses the file.
    pub fn take_from(url: &str) -> Result<(String, Self)> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (own, others): (Vec<_>, Vec<_>) = query
            .split('&')
            .partition(|pair| pair.starts_with("sslmode=") || pair.starts_with("sslrootcert="));
        let name = |pair: &&str| pair.split('=').next().unwrap_or_default().to_owned();
        let mut names = others.iter().map(name);
        if let Some(unknown) = names.find(|name| is_unsupported(name)) {
            // Without its value, which may be a password.
            bail!(
                "the address of the PostgreSQL store has {unknown}, which debora does not have; leave it out (of TLS there are \
                 sslmode, sslrootcert and sslnegotiation)"
            );
        }
        // The form's decoder, but here a plus is a plus.
        let own = own.join("&").replace('+', "%2B");
        let own: Vec<(String, String)> = serde_urlencoded::from_str(&own)?;
        let said = |name: &str, variable: &str| {
            let found = own.iter().rfind(|(key, _)| key == name);
            found.map_or_else(
                || std::env::var(variable).ok(),
                |(_, value)| Some(value.clone()),
            )
        };
        let rules = Self::from_mode(
            said("sslmode", "PGSSLMODE"),
            said("sslrootcert", "PGSSLROOTCERT"),
        )?;
        Ok((format!("{place}?{}", others.join("&")), rules))
    }

    fn from_mode(mode: Option<String>, roots: Option<String>) -> Result<Self> {
        let is_system = roots.as_deref() == Some(SYSTEM);
        let mode = match mode {
            None if is_system => TlsMode::VerifyFull,
            None => TlsMode::Prefer,
            Some(word) => mode_of(&word)?,
        };
        // A public authority certifies everyone, so without the name its certificate says nothing.
        ensure!(
            !is_system || mode == TlsMode::VerifyFull,
            "sslrootcert={SYSTEM} with sslmode={} would trust any server with a public certificate; give sslmode=verify-full",
            mode.name()
        );
        Ok(Self { mode, roots })
    }

    /// A connection.
    pub fn connect(&self, config: &Config) -> Result<Client> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let connect = |mode, tls| runtime.block_on(config.clone().ssl_mode(mode).connect(tls));
        if self.mode == TlsMode::Disable || config.get_hosts().iter().all(is_socket) {
            let connected = connect(SslMode::Disable, Tls::default())?;
            return Ok(Client::new(runtime, connected));
        }
        let tls = Tls::new(self.client()?);
        let (first, second) = match self.mode {
            TlsMode::Allow => (SslMode::Disable, Some(SslMode::Require)),
            TlsMode::Prefer => (SslMode::Prefer, Some(SslMode::Disable)),
            _ => (SslMode::Require, None),
        };
        let mut before = String::new();
        let connected = connect(first, tls.clone());
        let connected = match (connected, second) {
            (Err(error), Some(second)) if was_refused(&error) => {
                // Said, too: after a wrong password, the answer to the other kind only says that the server wants this one.
                before = format!(" (first {})", refusal(&error, first));
                connect(second, tls)
            }
            (connected, _) => connected,
        };
        let connected = connected.map_err(|error| {
            let advice = self.advice(&error);
            let failed = format!("with sslmode={}{before}{advice}", self.mode.name());
            anyhow::Error::new(error).context(failed)
        })?;
        Ok(Client::new(runtime, connected))
    }

    fn client(&self) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let is_full = self.mode == TlsMode::VerifyFull;
        let verifier = Verifier::new(self.roots()?, is_full, Arc::clone(&provider))?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        // Servers that are asked for TLS from the first byte insist on it (sslnegotiation=direct).
        client.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(client)
    }

    fn roots(&self) -> Result<Option<RootCertStore>> {
        let file = match self.roots.as_deref() {
            Some(SYSTEM) => system_roots()?,
            // libpq ignores a file that is missing unless the mode is to verify; whoever names one means it.
            Some(file) => file.into(),
            None => match home_roots().filter(|file| file.exists()) {
                Some(file) => file,
                None => {
                    ensure!(
                        self.mode < TlsMode::VerifyCa,
                        "sslmode={} needs the certificate of the authority that signed the server's; give sslrootcert=FILE, \
                         or sslrootcert={SYSTEM} for the operating system's authorities",
                        self.mode.name()
                    );
                    return Ok(None);
                }
            },
        };
        read_roots(&file)
            .with_context(|| {
                format!(
                    "cannot read the roots in {}; sslrootcert must be a file of certificates in PEM",
                    file.display()
                )
            })
            .map(Some)
    }

    /// What to do about an error.
    fn advice(&self, error: &Error) -> String {
        let source = error.source();
        let handshake = source.and_then(|source| source.downcast_ref::<HandshakeError>());
        match handshake {
            Some(error) => format!(" ({})", error.advice()),
            // The client has no kind for it; it says this before a handshake, and nothing else then.
            None if source.is_some_and(|source| source.to_string().contains("not support TLS")) => {
                " (set ssl = on in its postgresql.conf; or sslmode=disable, if nobody can listen on the way to it)".into()
            }
            None => String::new(),
        }
    }
}

impl TlsMode {
    fn name(self) -> &'static str {
        MODES[self as usize].0
    }
}

fn mode_of(word: &str) -> Result<TlsMode> {
    let found = MODES.iter().find(|(name, _)| *name == word);
    found.map(|(_, mode)| *mode).with_context(|| {
        let names = MODES.map(|(name, _)| name).join(", ");
        format!("sslmode {word:?} is not one of {names}")
    })
}

fn is_socket(host: &Host) -> bool {
    !matches!(host, Host::Tcp(_))
}

/// Whether a server was reached and refused this kind of connection; one that was not reached would not be by another kind.
fn was_refused(error: &Error) -> bool {
    let source = error.source();
    error.as_db_error().is_some() || source.is_some_and(|source| source.is::<HandshakeError>())
}

/// What a server said to a kind of connection.
fn refusal(error: &Error, mode: SslMode) -> String {
    let kind = if mode == SslMode::Disable {
        "without TLS"
    } else {
        "with TLS"
    };
    let source = error
        .source()
        .map_or(error.to_string(), ToString::to_string);
    let why = error
        .as_db_error()
        .map_or(source, |error| error.message().to_owned());
    format!("{kind}: {why}")
}

/// Whether libpq has this parameter of TLS, and debora does not.
fn is_unsupported(name: &str) -> bool {
    name.starts_with("ssl") && name != "sslnegotiation"
}

fn home_roots() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".postgresql/root.crt"))
}

fn system_roots() -> Result<PathBuf> {
    // As OpenSSL has it, for systems that keep them elsewhere.
    if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
        return Ok(file.into());
    }
    let found = SYSTEM_ROOTS
        .iter()
        .map(PathBuf::from)
        .find(|file| file.exists());
    found.with_context(|| {
        format!(
            "this system has no roots in {}; name their file in SSL_CERT_FILE, or give sslrootcert=FILE",
            SYSTEM_ROOTS.join(", ")
        )
    })
}

fn read_roots(file: &std::path::Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    ensure!(!roots.is_empty(), "it has no certificate");
    Ok(roots)
}
