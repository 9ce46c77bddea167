//! The keys that forms made in the last minute. A form that is sent again, as by a second click, is answered again: the browser
//! drops the first answer, and with it a key that nobody has seen.

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::keys::{self, MadeKey};
use crate::service::keys::NewKey;

/// How long a key is kept for the repeat, in milliseconds: longer than a person waits for an answer.
const KEPT_MILLISECONDS: i64 = 60_000;

/// A key that a form made.
#[derive(Clone)]
pub struct ShownKey {
    /// The key.
    pub made: MadeKey,
    /// Whether it was the first, made by somebody without one.
    pub first: bool,
    actor: Arc<str>,
    /// What the form was rendered with. 128 random bits, so that nobody else has them.
    once: String,
    at: i64,
}

impl ShownKey {
    /// Whether the same form asks for it.
    fn is_of(&self, once: &str, new: &NewKey) -> bool {
        let made = &self.made;
        // A form without the bits is a program's, and never a repeat.
        !once.is_empty()
            && self.once == once
            && (&made.name, made.role, &made.experiments) == (&new.name, new.role, &new.experiments)
    }
}

/// Those of the last minute, one for each caller. In memory alone: elsewhere only hashes are kept.
#[derive(Default)]
pub struct ShownKeys(Mutex<Vec<ShownKey>>);

impl ShownKeys {
    /// Drops those that are too old.
    pub fn trim(&self, now: i64) {
        // Whoever holds it drops them, too.
        if let Ok(mut kept) = self.0.try_lock() {
            drop_old(&mut kept, now);
        }
    }

    async fn lock(&self, now: i64) -> MutexGuard<'_, Vec<ShownKey>> {
        let mut kept = self.0.lock().await;
        drop_old(&mut kept, now);
        kept
    }
}

fn drop_old(kept: &mut Vec<ShownKey>, now: i64) {
    kept.retain(|shown| now - shown.at <= KEPT_MILLISECONDS);
}

/// The first key, if this form has made it: its maker has no key to be known by.
pub async fn first(app: &AppState, once: &str, new: &NewKey) -> Option<ShownKey> {
    let now = (app.service.clock)().monotonic;
    let kept = app.shown_keys.lock(now).await;
    let mut firsts = kept.iter().filter(|shown| shown.first);
    firsts.find(|shown| shown.is_of(once, new)).cloned()
}

/// Makes the key that a form asks for, unless this very form has made it.
pub async fn made(
    app: &AppState,
    caller: &Caller,
    once: String,
    new: NewKey,
) -> Result<ShownKey, ApiError> {
    let (app, caller) = (Arc::clone(app), caller.clone());
    // In a task of its own: it goes on when the browser hangs up, and so the repeat finds the key.
    let making = tokio::spawn(async move {
        let now = (app.service.clock)().monotonic;
        // Held while the key is made: a repeat may come before it is.
        let mut kept = app.shown_keys.lock(now).await;
        let own = |shown: &&ShownKey| shown.first || shown.actor == caller.name;
        if let Some(shown) = kept
            .iter()
            .filter(own)
            .find(|shown| shown.is_of(&once, &new))
        {
            return Ok(shown.clone());
        }
        let shown = ShownKey {
            made: keys::made(&app, &caller, new).await?,
            first: !caller.keyed,
            actor: Arc::clone(&caller.name),
            once,
            at: now,
        };
        kept.retain(|before| before.actor != shown.actor);
        kept.push(shown.clone());
        Ok(shown)
    });
    making
        .await
        .unwrap_or_else(|_| Err(ApiError::store("making a key ended without an answer")))
}
