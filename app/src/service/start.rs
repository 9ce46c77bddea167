//! A server's start, noted in the store: which store it is, and how often it was started.
//!
//! A copy has the identity of its original, and both count their starts: whoever noted `identity` and `incarnation` of the one
//! that was served last can tell a copy that is behind.

use anyhow::{Context as _, Result};

use crate::hex;
use crate::store::Store;

/// Which store was started, and the number of the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStart {
    pub identity: String,
    pub incarnation: u64,
}

/// Notes a start. The first one gives the store its identity.
pub fn note_start(store: &mut dyn Store, at: i64) -> Result<StoreStart> {
    store.begin()?;
    let noted = note(store, at).context("cannot note the start in the store");
    if noted.is_err() {
        store.rollback();
    }
    let noted = noted?;
    store.commit()?;
    Ok(noted)
}

fn note(store: &mut dyn Store, at: i64) -> Result<StoreStart> {
    if store.identity()?.is_none() {
        store.set_identity(&random_digits()?)?;
    }
    // Read again: of nodes that start a store together the first one's stays.
    let identity = store.identity()?.context("the store has no identity")?;
    Ok(StoreStart {
        identity,
        incarnation: store.add_start(&random_digits()?, at)?,
    })
}

/// 128 bits that nothing else has.
fn random_digits() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .context("the operating system's random number generator failed")?;
    Ok(hex::encode(&random))
}
