//! `debora init`: a commented spec to start from, and beside it the schema that its first line names.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::args::Common;
use crate::commands::print;
use crate::files::write_whole;

/// The spec written: valid as it is, and short enough to read.
pub const TEMPLATE: &str = include_str!("template.toml");

/// In the spec's own folder: an editor that finds no schema under the name it is given reports that as an error.
const SCHEMA_FILE: &str = "debora.schema.json";

pub fn init(file: &Path, common: &Common) -> Result<bool> {
    if file == Path::new("-") {
        // Without the line: nobody knows in which folder this will be.
        print(TEMPLATE)?;
        return Ok(true);
    }
    write_whole(file, common.force, |out| {
        Ok(write!(out, "#:schema ./{SCHEMA_FILE}\n{TEMPLATE}")?)
    })?;
    let schema = write_schema(&file.with_file_name(SCHEMA_FILE), common.force)?;
    let shown = file.display();
    print(&format!(
        "wrote {shown}{schema}; next: debora plan {shown}, then debora replicate {shown}\n"
    ))?;
    Ok(true)
}

/// Writes the schema if it is not there, and says so.
fn write_schema(file: &Path, force: bool) -> Result<String> {
    let (schema, shown) = (debora::spec::schema(), file.display());
    match fs::read_to_string(file) {
        Ok(there) if there == schema => return Ok(String::new()),
        // One of another version still serves, and what is not ours is not to be lost.
        Ok(_) if !force => {
            return Ok(format!(
                "; {shown} is not this version's, --force replaces both"
            ));
        }
        _ => {}
    }
    write_whole(file, force, |out| Ok(out.write_all(schema.as_bytes())?))?;
    Ok(format!(", and {shown} for editors"))
}
