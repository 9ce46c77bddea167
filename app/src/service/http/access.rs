//! Who asks, and what the key allows: read < decide < admin.
//!
//! A store without keys is open to everyone who can reach it, which `debora serve` allows on the loopback address alone. From
//! the first key on, every request needs one. Only hashes are kept and compared: a key has 256 random bits, so the time a
//! lookup takes says nothing about it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, RwLock};

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::hex;
use crate::service::http::AppState;
use crate::service::http::error::ApiError;
use crate::store::{ApiKey, KEYLESS, Role};

/// How long a key that is added or revoked may go unnoticed, in milliseconds.
pub const REFRESH_MILLISECONDS: i64 = 2_000;

/// The cookie that holds a key, for the pages.
pub const COOKIE_NAME: &str = "debora_key";

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name of the key.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Whether a key was needed.
    pub keyed: bool,
}

impl Caller {
    /// Refuses those who may do less than this.
    pub fn require(&self, needed: Role) -> Result<(), ApiError> {
        if self.role >= needed {
            Ok(())
        } else {
            Err(ApiError::wrong_role(&self.name, self.role, needed))
        }
    }
}

/// The store's keys as they were read last.
#[derive(Default)]
struct KnownKeys {
    read_at: Option<i64>,
    /// Whether there is no key at all, not even a revoked one.
    open: bool,
    callers: HashMap<String, Caller>,
}

impl KnownKeys {
    fn holder(&self, token: &str) -> Option<Caller> {
        self.callers
            .get(&hex::encode(&Sha256::digest(token)))
            .cloned()
    }
}

/// The keys in memory.
#[derive(Default)]
pub struct Access {
    known: RwLock<Arc<KnownKeys>>,
    /// Held while they are read, so that one reads and the others wait.
    reading: Mutex<()>,
}

impl Access {
    /// Who sends a request with these headers.
    async fn caller(&self, app: &AppState, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let known = self.fresh(app).await?;
        if known.open {
            return local(headers);
        }
        let token = token(headers).ok_or_else(|| {
            ApiError::no_key(
                "this service needs an API key; send it as Authorization: Bearer debora_...",
            )
        })?;
        known.holder(token).ok_or_else(|| {
            ApiError::no_key("this API key is not known, or revoked; ask for another one")
        })
    }

    /// Who holds this key, if it is valid.
    pub async fn holder(&self, app: &AppState, token: &str) -> Result<Option<Caller>, ApiError> {
        Ok(self.fresh(app).await?.holder(token))
    }

    /// The keys as they were in the store at most two seconds ago.
    async fn fresh(&self, app: &AppState) -> Result<Arc<KnownKeys>, ApiError> {
        let now = (app.service.clock)();
        // A clock that was set back must not keep a revoked key alive.
        let fresh = |known: &KnownKeys| {
            known
                .read_at
                .is_some_and(|at| (0..REFRESH_MILLISECONDS).contains(&(now - at)))
        };
        let current = || Arc::clone(&self.known.read().expect("no panic while reading keys"));
        let known = current();
        if fresh(&known) {
            return Ok(known);
        }
        let _reading = self.reading.lock().await;
        let known = current();
        if fresh(&known) {
            return Ok(known);
        }
        let keys = app.read(|store| store.keys()).await?;
        let known = Arc::new(KnownKeys {
            read_at: Some(now),
            open: keys.is_empty(),
            callers: callers(keys),
        });
        *self.known.write().expect("no panic while reading keys") = Arc::clone(&known);
        Ok(known)
    }
}

fn callers(keys: Vec<ApiKey>) -> HashMap<String, Caller> {
    let valid = keys.into_iter().filter(|key| key.revoked_at.is_none());
    valid
        .map(|key| {
            (
                key.hash,
                Caller {
                    name: key.name,
                    role: key.role,
                    keyed: true,
                },
            )
        })
        .collect()
}

/// The key that comes with a request: in its Authorization or, from the pages, in its cookie.
fn token(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, token)| token)
}

/// Everyone, where no key is needed: but only by a local name of this machine.
///
/// A page from elsewhere can have its own name point here, and would then be admin; so would all clients of a proxy.
fn local(headers: &HeaderMap) -> Result<Caller, ApiError> {
    let host = headers
        .get(HOST)
        .map(|host| host.to_str().unwrap_or_default());
    if let Some(host) = host.filter(|host| !is_local(host)) {
        let message = format!(
            "without API keys only this machine may ask, and the request was sent to {host:?}; make a key with `debora keys add`"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, "not_local", message)
            .against("a loopback host", host));
    }
    Ok(Caller {
        name: KEYLESS.into(),
        role: Role::Admin,
        keyed: false,
    })
}

/// Whether a host, with or without a port, is a name of the machine itself.
fn is_local(host: &str) -> bool {
    let port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = host
        .rsplit_once(':')
        .filter(|(_, text)| port(text))
        .map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        app.access.caller(app, &parts.headers).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_machine_itself_are_local() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "10.0.0.1",
            "[::2]:8080",
            "127.0.0.1.example.org:80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
