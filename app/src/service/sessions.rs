//! Sessions of the pages: a token in place of an API key, for a working day.

use std::sync::Arc;

use anyhow::Result;

use crate::hex;
use crate::service::random::random;
use crate::service::request::of_store::StoreRequest;
use crate::service::request::{Refusal, token_hash};
use crate::store::{Session, Store};

/// How long a session lasts: a working day, so that a browser left open does not decide for ever.
const SESSION_MILLISECONDS: i64 = 12 * 60 * 60 * 1_000;

/// Sessions of a key at a time: a team that shares one, each with some browsers.
const SESSIONS_MAX: usize = 100;

/// Begins a session. Answered with its token, which is stored nowhere: 64 hexadecimal digits.
#[derive(Clone, Debug)]
pub struct LogIn {
    /// The name of the key that it stands for.
    pub key_name: Arc<str>,
}

impl StoreRequest for LogIn {
    type Reply = String;

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<String, Refusal>> {
        // Swept here: nobody begins one without passing by. And bounded, or a key could make as many as it likes, each of
        // which costs every later log-in time.
        store.end_sessions(now)?;
        store.end_oldest_sessions(&self.key_name, SESSIONS_MAX - 1)?;
        let token = hex::encode(&random::<32>()?);
        store.add_session(&Session {
            hash: token_hash(&token),
            key_name: self.key_name.to_string(),
            expires_at: now + SESSION_MILLISECONDS,
        })?;
        Ok(Ok(token))
    }
}

/// Ends a session.
#[derive(Clone, Debug)]
pub struct LogOut {
    /// Of its token ([`token_hash`]).
    pub hash: String,
}

impl StoreRequest for LogOut {
    type Reply = ();

    fn serve(&self, store: &mut Store, _now: i64) -> Result<Result<(), Refusal>> {
        store.end_session(&self.hash).map(Ok)
    }
}
