//! `debora keys`: who may do what. A key is shown once; the store has its hash.

use anyhow::Result;
use debora::measure::answer::row_for_each;
use debora::measure::words::listed;
use serde_json::{Value, json};

use crate::args::{Common, KeysVerb};
use crate::calendar::{now, utc};
use crate::commands::print;
use crate::service::keys::{NewKey, revoke as revoke_key};
use crate::store::{ApiKey, Location, Purpose, Role};
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
    // None at all is no restriction: a key for nothing would be of no use.
    let scope = (!experiments.is_empty()).then_some(experiments);
    let new = NewKey {
        name: name.into(),
        role,
        experiments: scope.map(<[String]>::to_vec),
    };
    new.check()?;
    // A server that others can reach needs a key before it starts, so the first key may come before the store.
    let made = !location.is_made()?;
    let mut store = location.open(if made { Purpose::Serve } else { Purpose::Write })?;
    store.begin()?;
    let key = new.add(&mut store, now())??;
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
    let time = |at: Option<i64>| at.map_or("-".into(), utc);
    let keys = row_for_each(&keys)
        .words("name", |key| &key.name)
        .words("role", |key| key.role.name())
        .words("for", |key| scope_words(key.experiments.as_deref()))
        .words("created (UTC)", |key| utc(key.created_at))
        .words("last used (UTC)", |key| time(key.last_used_at))
        .words("revoked (UTC)", |key| time(key.revoked_at));
    print(&table(&keys.table()))
}

fn document(key: &ApiKey) -> Value {
    // The hash is left out: it only serves the server's comparison with a key that it is shown.
    json!({
        "name": key.name,
        "role": key.role,
        "experiments": key.experiments,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    })
}

fn revoke(location: &Location, name: &str) -> Result<()> {
    let mut store = location.open(Purpose::Write)?;
    // One transaction for look and write.
    store.begin()?;
    revoke_key(&mut store, name, now())??;
    store.commit()?;
    print(&format!(
        "key {name} is revoked; servers refuse it within two seconds\n"
    ))
}
