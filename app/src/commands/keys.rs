//! `debora keys`: who may do what. A key is shown once; the store has its hash.

use anyhow::{Context as _, Result, bail, ensure};
use debora::measure::words::listed;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::args::{Common, KeysVerb};
use crate::calendar::{now, utc};
use crate::commands::print;
use crate::hex;
use crate::store::{ApiKey, KEYLESS, Location, Purpose, Role, Store};
use crate::terminal::table;

pub fn keys(action: &KeysVerb, location: &Location, common: &Common) -> Result<bool> {
    match action {
        KeysVerb::Add { name, role } => add(location, name, (*role).into(), common),
        KeysVerb::List => list(location, common),
        KeysVerb::Revoke { name } => revoke(location, name),
    }?;
    Ok(true)
}

fn add(location: &Location, name: &str, role: Role, common: &Common) -> Result<()> {
    check_name(name)?;
    // A server that others can reach needs a key before it starts, so the first key may come before the store.
    let made = !location.is_made()?;
    let mut store = location.open(if made { Purpose::Serve } else { Purpose::Write })?;
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .context("the operating system's random number generator failed")?;
    // The prefix makes a leaked key recognisable in a repository or a log.
    let key = format!("debora_{}", hex::encode(&random));
    let hash = hex::encode(&Sha256::digest(&key));
    change(&mut *store, |keys| {
        // The log names keys, so a name that was another's would mislead its readers.
        if keys.iter().any(|key| key.name == name) {
            bail!("there is, or was, a key named {name:?}; choose another name");
        }
        Ok(ApiKey {
            name: name.into(),
            role,
            hash,
            created_at: now(),
            revoked_at: None,
            experiments: None,
        })
    })?;
    if common.json {
        let document = json!({ "name": name, "role": role, "key": key });
        return print(&format!("{document:#}\n"));
    }
    // The key alone is on standard output, so that it can be piped to where it belongs.
    print(&format!("{key}\n"))?;
    if made {
        eprint!("made the store {location}; ");
    }
    eprintln!(
        "key {name} has role {}; it is not shown again, since only its hash is kept",
        role.name()
    );
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    // What is safe in a log line, a cookie and a shell without quotes.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    ensure!(
        (1..=64).contains(&name.len()) && name.bytes().all(allowed) && name != KEYLESS,
        "{name:?} cannot be a key's name; give up to 64 letters, digits and - _ . @ (and not {KEYLESS:?}, which stands for callers without a key)"
    );
    Ok(())
}

fn list(location: &Location, common: &Common) -> Result<()> {
    let keys = location.open(Purpose::Read)?.keys()?;
    if common.json {
        let keys: Vec<_> = keys.iter().map(document).collect();
        return print(&format!("{:#}\n", json!({ "keys": keys })));
    }
    if keys.is_empty() {
        return print("no keys; `debora keys add NAME --role admin` makes one\n");
    }
    let rows: Vec<_> = keys.iter().map(row).collect();
    print(&table(
        &["name", "role", "created (UTC)", "revoked (UTC)"],
        &rows,
    ))
}

fn document(key: &ApiKey) -> Value {
    // The hash is left out: it only serves the server's comparison with a key that it is shown.
    json!({
        "name": key.name,
        "role": key.role,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    })
}

fn row(key: &ApiKey) -> Vec<String> {
    vec![
        key.name.clone(),
        key.role.name().into(),
        utc(key.created_at),
        key.revoked_at.map_or("-".into(), utc),
    ]
}

fn revoke(location: &Location, name: &str) -> Result<()> {
    let mut store = location.open(Purpose::Write)?;
    change(&mut *store, |keys| {
        let key = keys.iter().find(|key| key.name == name);
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        let known = if names.is_empty() {
            "there are no keys".into()
        } else {
            format!("there are {}", listed(&names))
        };
        let key = key.with_context(|| format!("there is no key {name:?}; {known}"))?;
        if let Some(at) = key.revoked_at {
            bail!("key {name:?} was already revoked at {} UTC", utc(at));
        }
        // Kept, not removed: without it a store whose last key is revoked would be open to everyone.
        Ok(ApiKey {
            revoked_at: Some(now()),
            ..key.clone()
        })
    })?;
    print(&format!(
        "key {name} is revoked; servers refuse it within two seconds\n"
    ))
}

/// Writes the key that a look at all keys leads to.
fn change(store: &mut dyn Store, change: impl FnOnce(&[ApiKey]) -> Result<ApiKey>) -> Result<()> {
    // One transaction for look and write: two that add the same name at once must not both succeed.
    store.begin()?;
    let key = change(&store.keys()?)?;
    store.set_key(&key)?;
    store.commit()
}
