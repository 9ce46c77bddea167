//! API keys: what one may be called and be for, how one is made, and how it ends.
//!
//! The command line and the service make and revoke them by the same functions. The service has two rules more, as those who only
//! reach its address could not mend what they break: the first key is an admin's, and the last admin's is not revoked.

use anyhow::Result;

use crate::hex;
use crate::service::limits::quoted;
use crate::service::random::random;
use crate::service::request::of_store::StoreRequest;
use crate::service::request::{Refusal, is_id, token_hash};
use crate::store::{ApiKey, ITSELF, KEYLESS, Role, Store};

/// The longest name of a key, in bytes.
pub const KEY_NAME_MAX: usize = 64;

/// Whether a text is what addresses have for "here" and "above": clients take it out of them, so nothing can be done to a key of
/// that name by its address.
pub fn is_dots(name: &str) -> bool {
    [".", ".."].contains(&name)
}

/// Whether a key, or a webhook, can have this name.
pub fn is_key_name(name: &str) -> bool {
    // What is safe in a log line, a cookie and a shell without quotes.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let fits = (1..=KEY_NAME_MAX).contains(&name.len()) && name.bytes().all(allowed);
    fits && !is_dots(name) && ![KEYLESS, ITSELF].contains(&name)
}

/// A key that is asked for.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// What it is called.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The ids of the experiments it is for; `None` for all.
    pub experiments: Option<Vec<String>>,
}

impl NewKey {
    /// Refuses a name that cannot be a key's, and ids that no experiment can have.
    pub fn check(&self) -> Result<(), Refusal> {
        let name = &self.name;
        if !is_key_name(name) {
            return Err(Refusal::KeyName { name: quoted(name) });
        }
        // Whether they are there is not asked: a key may be handed out before its experiment is created.
        let mut ids = self.experiments.iter().flatten();
        ids.find(|id| !is_id(id))
            .map_or(Ok(()), |id| Err(Refusal::IdText { id: quoted(id) }))
    }

    /// Whether it can do everything.
    fn is_admin_of_all(&self) -> bool {
        self.role == Role::Admin && self.experiments.is_none()
    }

    /// Adds it, within a transaction: the key itself, which is kept nowhere.
    pub fn add(&self, store: &mut Store, at: i64) -> Result<Result<String, Refusal>> {
        // The prefix makes a leaked key recognisable in a repository or a log.
        let key = format!("debora_{}", hex::encode(&random::<32>()?));
        let row = ApiKey {
            name: self.name.clone(),
            role: self.role,
            hash: token_hash(&key),
            created_at: at,
            revoked_at: None,
            experiments: self.experiments.clone(),
            last_used_at: None,
        };
        // The log names keys, so a name that was another's would mislead its readers. The store refuses it: others may be adding
        // the same name since anyone looked.
        Ok(if store.add_key(&row)? {
            Ok(key)
        } else {
            Err(Refusal::KeyTaken {
                name: self.name.clone(),
            })
        })
    }
}

/// Adds a key for a caller of the service, who has one or needs none. Answered with the key, which is stored nowhere.
#[derive(Clone, Debug)]
pub struct AddKey {
    /// What it is to be.
    pub new: NewKey,
    /// Whether the caller has a key.
    pub keyed: bool,
}

impl StoreRequest for AddKey {
    type Reply = String;

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<String, Refusal>> {
        let Self { new, keyed } = self;
        if let Err(refusal) = new.check() {
            return Ok(Err(refusal));
        }
        // Asked within the transaction: of two who make the first key at the same time, one finds the other's.
        if !keyed && !store.keys()?.is_empty() {
            return Ok(Err(Refusal::KeyNeeded));
        }
        if !keyed && !new.is_admin_of_all() {
            return Ok(Err(Refusal::FirstKey));
        }
        new.add(store, now)
    }
}

/// Revokes the key of this name, within a transaction.
pub fn revoke(store: &mut Store, name: &str, at: i64) -> Result<Result<(), Refusal>> {
    let keys = store.keys()?;
    let Some(key) = keys.iter().find(|key| key.name == name) else {
        let names = keys.into_iter().map(|key| key.name).collect();
        let name = quoted(name);
        return Ok(Err(Refusal::NoKeyNamed { name, names }));
    };
    if let Some(at) = key.revoked_at {
        let name = name.to_owned();
        return Ok(Err(Refusal::KeyRevoked { name, at }));
    }
    // Kept, not removed: without it a store whose last key is revoked would be open to everyone.
    let revoked = ApiKey {
        revoked_at: Some(at),
        ..key.clone()
    };
    store.set_key(&revoked).map(Ok)
}

/// Revokes a key for a caller of the service.
#[derive(Clone, Debug)]
pub struct RevokeKey {
    /// What it is called.
    pub name: String,
}

impl StoreRequest for RevokeKey {
    type Reply = ();

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<(), Refusal>> {
        let name = &self.name;
        let keys = store.keys()?;
        let mut admins = keys.iter().filter(|key| {
            key.role == Role::Admin && key.experiments.is_none() && key.revoked_at.is_none()
        });
        let is_last = admins.next().is_some_and(|key| key.name == *name) && admins.next().is_none();
        if is_last {
            let name = name.clone();
            return Ok(Err(Refusal::LastAdmin { name }));
        }
        revoke(store, name, now)
    }
}
