//! Random bytes: keys, salts, tokens, secrets and the names of stores and nodes are made of them.
//!
//! They are the operating system's. Tests that compare whole answers put a source of their own in its place, which only a build
//! with the feature `fixed` lets them do.

use anyhow::Result;

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    #[cfg(feature = "fixed")]
    if let Some(source) = fixed::SOURCE.get() {
        source(&mut bytes);
        return Ok(bytes);
    }
    getrandom::fill(&mut bytes).map_err(|error| {
        anyhow::anyhow!("the operating system's random number generator failed: {error}")
    })?;
    Ok(bytes)
}

/// The place of another source.
#[cfg(feature = "fixed")]
pub mod fixed {
    use std::sync::OnceLock;

    pub(super) static SOURCE: OnceLock<fn(&mut [u8])> = OnceLock::new();

    /// Has this process take its random bytes from here, for good; the first source stays.
    pub fn from(source: fn(&mut [u8])) {
        let _ = SOURCE.set(source);
    }
}
