//! `debora keys`: who may do what. A key is shown once; the store has its hash.

use anyhow::{Context as _, Result, bail, ensure};
use debora::job::words::{listed, table};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::args::{Common, KeysVerb};
use crate::calendar::{now, utc};
use crate::commands::print;
use crate::hex;
use crate::store::{ApiKey, KEYLESS, Location, Purpose, Role, Store};

pub fn keys(action: &KeysVerb, location: &Location, common: &Common) -> Result<bool> {
    match action {
        KeysVerb::Add { name, role } => add(location, name, (*role).into(), common),
        KeysVerb::List => list(location, common),
        KeysVerb::Revoke { name } => revoke(location, name),
    }?;
    Ok(true)
}

fn add(location: &Location, name: &str, role: Role, common: &Common) -> Result<()> {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    ensure!(
        (1..=64).contains(&name.len()) && name.bytes().all(named) && name != KEYLESS,
        "{name:?} cannot be a key's name; give up to 64 letters, digits and - _ . @ (and not {KEYLESS:?}, which stands for callers without a key)"
    );
    // A server that others can reach needs a key before it starts, so the first key may come before the store.
    let made = !location.is_made()?;
    let mut store = location.open(if made { Purpose::Serve } else { Purpose::Write })?;
    let mut random = [0; 32];
    getrandom::fill(&mut random).context("the system gives no random numbers")?;
    let key = format!("debora_{}", hex::encode(&random));
    let hash = hex::encode(&Sha256::digest(&key));
    change(&mut *store, |keys| {
        // The log names keys, so a name that was another's would mislead its readers.
        if keys.iter().any(|key| key.name == name) {
            bail!("a key named {name:?} is there, or was; choose another name");
        }
        Ok(ApiKey {
            name: name.into(),
            role,
            hash,
            created_at: now(),
            revoked_at: None,
        })
    })?;
    let word = json!(role);
    if common.json {
        return print(&format!(
            "{:#}\n",
            json!({ "name": name, "role": word, "key": key })
        ));
    }
    // The key alone is on standard output, so that it can be piped to where it belongs.
    print(&format!("{key}\n"))?;
    let made = if made {
        format!("made the store {location}; ")
    } else {
        String::new()
    };
    eprintln!(
        "{made}key {name} has role {}; it is not shown again, since only its hash is kept",
        word.as_str().unwrap_or("?")
    );
    Ok(())
}

fn list(location: &Location, common: &Common) -> Result<()> {
    let keys = location.open(Purpose::Read)?.keys()?;
    if common.json {
        let document = |key: &ApiKey| {
            let ApiKey {
                name,
                role,
                created_at,
                revoked_at,
                ..
            } = key;
            json!({ "name": name, "role": role, "created_at": created_at, "revoked_at": revoked_at })
        };
        let keys: Vec<_> = keys.iter().map(document).collect();
        return print(&format!("{:#}\n", json!({ "keys": keys })));
    }
    if keys.is_empty() {
        return print("no keys; `debora keys add NAME --role admin` makes one\n");
    }
    let row = |key: &ApiKey| {
        let revoked = key.revoked_at.map_or("-".into(), utc);
        vec![
            key.name.clone(),
            json!(key.role).as_str().unwrap_or("?").into(),
            utc(key.created_at),
            revoked,
        ]
    };
    print(&table(
        &["name", "role", "made (UTC)", "revoked (UTC)"],
        &keys.iter().map(row).collect::<Vec<_>>(),
    ))
}

fn revoke(location: &Location, name: &str) -> Result<()> {
    let mut store = location.open(Purpose::Write)?;
    change(&mut *store, |keys| {
        let key = keys.iter().find(|key| key.name == name);
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        let known = if names.is_empty() {
            "there are none".into()
        } else {
            format!("there are {}", listed(&names))
        };
        let key = key.with_context(|| format!("there is no key {name:?}; {known}"))?;
        if let Some(at) = key.revoked_at {
            bail!("key {name:?} was revoked at {} UTC already", utc(at));
        }
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
    store.begin()?;
    let key = change(&store.keys()?)?;
    store.set_key(&key)?;
    store.commit()
}
