//! `debora seal`: what is fixed before an experiment's first decision.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use debora::measure::answer::Answer;
use debora::spec::Spec;

use crate::args::Common;
use crate::commands::print;
use crate::files::OutDir;
use crate::log::seal::Seal;
use crate::papers::{self, document};
use crate::service::limits::check_live;
use crate::terminal::{ink_for_stdout, laid_out};

pub fn seal(file: &Path, common: &Common) -> Result<bool> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).with_context(|| {
        format!("cannot read {name}; name a spec file, or write one with `debora init`")
    })?;
    let spec = Spec::parse(&text, &name)?;
    // What no service takes cannot be sealed: above all a key, which the seal would publish with the spec.
    check_live(&spec).map_err(|refusal| anyhow!("{name}: {refusal}"))?;
    let seal = Seal::of_spec(&text, &spec);
    let json = format!("{:#}\n", serde_json::to_value(&seal)?);
    if let Some(out) = &common.out {
        let out = OutDir::for_report(out, common.force)?;
        let page = document(&papers::seal::title(&seal), &papers::seal::answer(&seal));
        out.write("seal.json", json.as_bytes())?;
        out.write("seal.html", page.into_string().as_bytes())?;
    }
    if common.json {
        print(&json)?;
        return Ok(true);
    }
    let mut shown = Answer::default();
    shown.heading(papers::seal::title(&seal));
    shown.items.extend(papers::seal::answer(&seal).items);
    print(&laid_out(&shown, ink_for_stdout()))?;
    Ok(true)
}
