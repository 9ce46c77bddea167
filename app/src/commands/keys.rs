//! `debora keys`: who may do what. A key is shown once; the store has its hash.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use debora::job::words::{listed, table};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::args::{Common, KeysVerb};
use crate::commands::print;
use crate::service::chain::hex;
use crate::store::{ApiKey, Location, Purpose, Role, Store};

/// What the log calls those who need no key.
const KEYLESS: &str = "loopback";

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
    let key = format!("debora_{}", hex(&random));
    let hash = hex(&Sha256::digest(&key));
    change(&mut *store, |keys| {
        // The log names keys, so a name that was another's would mislead its readers.
        if keys.iter().any(|key| key.name == name) {
            bail!("a key named {name:?} is there, or was; choose another name");
        }
        Ok(ApiKey { name: name.into(), role, hash, created_at: now()?, revoked_at: None })
    })?;
    let word = json!(role);
    if common.json {
        return print(&format!("{:#}\n", json!({ "name": name, "role": word, "key": key })));
    }
    // The key alone is on standard output, so that it can be piped to where it belongs.
    print(&format!("{key}\n"))?;
    let made = if made { format!("made the store {location}; ") } else { String::new() };
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
            let ApiKey { name, role, created_at, revoked_at, .. } = key;
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
        vec![key.name.clone(), json!(key.role).as_str().unwrap_or("?").into(), utc(key.created_at), revoked]
    };
    print(&table(&["name", "role", "made (UTC)", "revoked (UTC)"], &keys.iter().map(row).collect::<Vec<_>>()))
}

fn revoke(location: &Location, name: &str) -> Result<()> {
    let mut store = location.open(Purpose::Write)?;
    change(&mut *store, |keys| {
        let key = keys.iter().find(|key| key.name == name);
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        let known = if names.is_empty() { "there are none".into() } else { format!("there are {}", listed(&names)) };
        let key = key.with_context(|| format!("there is no key {name:?}; {known}"))?;
        if let Some(at) = key.revoked_at {
            bail!("key {name:?} was revoked at {} UTC already", utc(at));
        }
        Ok(ApiKey { revoked_at: Some(now()?), ..key.clone() })
    })?;
    print(&format!("key {name} is revoked; servers refuse it within two seconds\n"))
}

/// Writes the key that a look at all keys leads to.
fn change(store: &mut dyn Store, change: impl FnOnce(&[ApiKey]) -> Result<ApiKey>) -> Result<()> {
    store.begin()?;
    let key = change(&store.keys()?)?;
    store.set_key(&key)?;
    store.commit()
}

fn now() -> Result<i64> {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(i64::try_from(passed.as_millis())?)
}

/// Milliseconds since 1970 as a date and a time.
fn utc(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The Gregorian date so many days after 1970-01-01. Counted from 1 March of year 0, the leap day ends its year, and months
/// start at day floor((153 m + 2) / 5) of it.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * cycle + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_794_780_282_999), "2026-11-15 22:04:42");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00");
    }

    /// Every day from 1600 to 2400 follows the one before, by the calendar's own rule.
    #[test]
    fn days_follow_each_other() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for days in -135_140..157_054 {
            assert_eq!(date(days), (year, month, day));
            let last = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
            (day, month) = if day < last { (day + 1, month) } else { (1, month + 1) };
            (month, year) = if month <= 12 { (month, year) } else { (1, year + 1) };
        }
    }
}
