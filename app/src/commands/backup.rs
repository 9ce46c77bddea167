//! `debora backup`: a store as one file, taken while it is served.

use std::path::Path;

use anyhow::{Result, ensure};
use debora::measure::words::counted;
use serde_json::json;

use crate::args::Common;
use crate::commands::print;
use crate::files::make_whole;
use crate::store::{Location, copy};

pub fn backup(location: &Location, to: &Path, common: &Common) -> Result<bool> {
    let shown = to.display();
    // Not even with --force: what is in the way may be the last good copy.
    ensure!(
        !to.exists(),
        "{shown} exists, and a backup never overwrites a file; choose another name"
    );
    let held = make_whole(to, |to| copy::to_file(location, to))?;
    if common.json {
        let document = json!({
            "file": shown.to_string(),
            "identity": held.identity,
            "incarnation": held.incarnation,
            "experiments": held.experiments,
            "outcomes": held.outcomes,
        });
        print(&format!("{document:#}\n"))?;
        return Ok(true);
    }
    let experiments = counted(held.experiments, "experiment", "experiments");
    let outcomes = counted(held.outcomes, "outcome", "outcomes");
    let identity = held.identity.map_or("none yet".into(), |identity| {
        format!("{identity}, incarnation {}", held.incarnation)
    });
    print(&format!(
        "{shown} holds {experiments} and {outcomes} of {location}, verified; it is the same store (identity {identity}), so serve it \
         only in place of the original; keep it secret, since it contains the experiments' keys\n"
    ))?;
    Ok(true)
}
