//! `debora keys`: who may do what. A key is shown once; the store has its hash.

use anyhow::{Context as _, Result, bail, ensure};
use debora::measure::words::listed;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::args::{Common, KeysVerb};
use crate::calendar::{now, utc};
use crate::commands::print;
use crate::hex;
use crate::service::request::{NAME_MAX, is_id};
use crate::store::{ApiKey, ITSELF, KEYLESS, Location, Purpose, Role};
use crate::terminal::table;

pub fn keys(action: &KeysVerb, location: &Location, common: &Common) -> Result<bool> {
    match action {
        KeysVerb::Add {
            name,
            role,
            experiments,
        } => add(location, name, (*role).into(), experiments, common),
        KeysVerb::List => list(location, common),
        KeysVerb::Revoke { name } => revoke(location, name),
    }?;
    Ok(true)
}

fn add(
    location: &Location,
    name: &str,
    role: Role,
    experiments: &[String],
    common: &Common,
) -> Result<()> {
    check_name(name)?;
    check_ids(experiments)?;
    // None at all is no restriction: a key for nothing would be of no use.
    let scope = (!experiments.is_empty()).then_some(experiments);
    // A server that others can reach needs a key before it starts, so the first key may come before the store.
    let made = !location.is_made()?;
    let mut store = location.open(if made { Purpose::Serve } else { Purpose::Write })?;
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .context("the operating system's random number generator failed")?;
    // The prefix makes a leaked key recognisable in a repository or a log.
    let key = format!("debora_{}", hex::encode(&random));
    let hash = hex::encode(&Sha256::digest(&key));
    let row = ApiKey {
        name: name.into(),
        role,
        hash,
        created_at: now(),
        revoked_at: None,
        experiments: scope.map(<[String]>::to_vec),
    };
    store.begin()?;
    // The log names keys, so a name that was another's would mislead its readers. The store refuses it: others may be adding
    // the same name since anyone looked.
    ensure!(
        store.add_key(&row)?,
        "there is, or was, a key named {name:?}; choose another name"
    );
    store.commit()?;
    if common.json {
        let document = json!({ "name": name, "role": role, "experiments": scope, "key": key });
        return print(&format!("{document:#}\n"));
    }
    // The key alone is on standard output, so that it can be piped to where it belongs.
    print(&format!("{key}\n"))?;
    if made {
        eprint!("made the store {location}; ");
    }
    eprintln!(
        "key {name} has role {} for {}; it is not shown again, since only its hash is kept",
        role.name(),
        scope_words(scope)
    );
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    // What is safe in a log line, a cookie and a shell without quotes.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    ensure!(
        (1..=64).contains(&name.len())
            && name.bytes().all(allowed)
            && ![KEYLESS, ITSELF].contains(&name),
        "{name:?} cannot be a key's name; give up to 64 letters, digits and - _ . @ (and neither {KEYLESS:?}, which stands for \
         callers without a key, nor {ITSELF:?}, which is what the service calls itself)"
    );
    Ok(())
}

fn check_ids(ids: &[String]) -> Result<()> {
    // Whether they are there is not asked: a key may be handed out before its experiment is created.
    match ids.iter().find(|id| !is_id(id)) {
        Some(id) => bail!(
            "{id:?} cannot be an experiment's id; give 1 to {NAME_MAX} lower-case letters, digits and dashes"
        ),
        None => Ok(()),
    }
}

fn scope_words(scope: Option<&[String]>) -> String {
    scope.map_or("all experiments".into(), listed)
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
        &["name", "role", "for", "created (UTC)", "revoked (UTC)"],
        &rows,
    ))
}

fn document(key: &ApiKey) -> Value {
    // The hash is left out: it only serves the server's comparison with a key that it is shown.
    json!({
        "name": key.name,
        "role": key.role,
        "experiments": key.experiments,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    })
}

fn row(key: &ApiKey) -> Vec<String> {
    vec![
        key.name.clone(),
        key.role.name().into(),
        scope_words(key.experiments.as_deref()),
        utc(key.created_at),
        key.revoked_at.map_or("-".into(), utc),
    ]
}

fn revoke(location: &Location, name: &str) -> Result<()> {
    let mut store = location.open(Purpose::Write)?;
    // One transaction for look and write.
    store.begin()?;
    let revoked = revoked(&store.keys()?, name)?;
    store.set_key(&revoked)?;
    store.commit()?;
    print(&format!(
        "key {name} is revoked; servers refuse it within two seconds\n"
    ))
}

/// The key of this name, revoked.
fn revoked(keys: &[ApiKey], name: &str) -> Result<ApiKey> {
    let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
    let known = if names.is_empty() {
        "there are no keys".into()
    } else {
        format!("there are {}", listed(&names))
    };
    let key = keys.iter().find(|key| key.name == name);
    let key = key.with_context(|| format!("there is no key {name:?}; {known}"))?;
    if let Some(at) = key.revoked_at {
        bail!("key {name:?} was already revoked at {} UTC", utc(at));
    }
    // Kept, not removed: without it a store whose last key is revoked would be open to everyone.
    Ok(ApiKey {
        revoked_at: Some(now()),
        ..key.clone()
    })
}
