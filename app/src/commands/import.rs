//! `debora import`: a recorded test as a world, with a spec to plan from.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use debora::measure::answer;
use debora::spec::{ImportColumns, Imported, ROWS_FILE, import};

use crate::args::Common;
use crate::commands::print;
use crate::files::{OutDir, write_whole};
use crate::terminal::{ink_for_stdout, laid_out};

/// The spec's file in the folder of --out.
const SPEC_FILE: &str = "spec.toml";

pub fn import_test(file: &Path, columns: &ImportColumns, common: &Common) -> Result<bool> {
    let name = file.display().to_string();
    let test = opened(file).with_context(|| format!("cannot read {name}"))?;
    let (found, written) = match &common.out {
        None => (import(&name, columns, test, &mut io::sink())?, None),
        Some(out) => {
            let out = OutDir::for_report(out, common.force)?;
            let found = into_folder(&name, columns, test, &out, common.force)?;
            (found, Some(out))
        }
    };
    if common.json {
        print(&format!("{:#}\n", serde_json::to_value(&found)?))?;
        return Ok(true);
    }
    let said = laid_out(&answer::imported(&found), ink_for_stdout());
    let next = match written {
        Some(out) => {
            let spec = out.path().join(SPEC_FILE);
            let (spec, rows) = (spec.display(), out.path().join(ROWS_FILE));
            let rows = rows.display();
            format!(
                "wrote {spec} and {rows}; next: debora plan {spec}, then debora replicate {spec}\n"
            )
        }
        // Nothing is written unasked: what would be is shown.
        None => format!("{}\n--out DIR writes this spec and its rows.\n", found.spec),
    };
    print(&format!("{said}\n{next}"))?;
    Ok(true)
}

fn opened(file: &Path) -> io::Result<Box<dyn Read>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(fs::File::open(file)?))
}

/// The rows go to the disk as they are read; they get their name after the last.
fn into_folder(
    name: &str,
    columns: &ImportColumns,
    test: Box<dyn Read>,
    out: &OutDir,
    force: bool,
) -> Result<Imported> {
    // Beside the writing, as an error of it would say that the rows cannot be written, though it is the test that is wrong.
    let mut found = None;
    let written = write_whole(&out.path().join(ROWS_FILE), force, |rows| {
        let result = import(name, columns, test, rows);
        let whole = result.is_ok();
        found = Some(result);
        ensure!(whole, "the test cannot be read");
        Ok(())
    });
    let found = match found {
        Some(Err(error)) => return Err(error.into()),
        Some(Ok(found)) => found,
        None => bail!("the rows were not begun"),
    };
    written?;
    out.write(SPEC_FILE, found.spec.as_bytes())?;
    Ok(found)
}
