//! `debora init`: a commented spec to start from.

use std::path::Path;

use anyhow::Result;

use crate::args::Common;
use crate::commands::print;
use crate::files::write_whole;

/// The spec written: valid as it is, and short enough to read.
pub const TEMPLATE: &str = include_str!("template.toml");

pub fn init(file: &Path, common: &Common) -> Result<bool> {
    if file == Path::new("-") {
        print(TEMPLATE)?;
        return Ok(true);
    }
    write_whole(file, common.force, |out| {
        Ok(out.write_all(TEMPLATE.as_bytes())?)
    })?;
    let shown = file.display();
    print(&format!(
        "wrote {shown}; next: debora plan {shown}, then debora replicate {shown}\n"
    ))?;
    Ok(true)
}
