//! The program `debora`: parse, run, exit code. 0 done, 1 a promise measured as broken, 2 an error.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory as _;

use debora_cli::args::{Cli, Verb};
use debora_cli::commands::{
    self, audit, backup, compare, diff, import, init, keys, listen_for_interrupts, merge, plan,
    ready, replicate, run, seal, serve, sweep,
};

/// What one thread allocates, another frees: requests go from handlers to the writer, answers back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::typed();
    match perform(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Scripts read errors line by line, so the causes follow on the same line.
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Does what was asked. False if a promise was measured as broken.
fn perform(cli: &Cli) -> Result<bool> {
    let common = &cli.common;
    // `serve` handles signals itself, as it lets requests in flight finish.
    if !matches!(cli.verb, Verb::Serve(_)) {
        listen_for_interrupts()?;
    }
    match &cli.verb {
        Verb::Init { file } => init::init(file, common),
        Verb::Import { file, columns, .. } => import::import_test(file, &columns.columns(), common),
        Verb::Plan { spec, gap, .. } => plan::plan(spec, *gap, common),
        Verb::Run {
            spec,
            pair,
            member,
            trace,
            simulator,
            ..
        } => {
            let member = (*pair, usize::from(*member));
            run::run(spec, member, trace.as_deref(), (*simulator).into(), common)
        }
        Verb::Replicate {
            spec,
            pairs,
            other_world,
        } => replicate::replicate(spec, pairs, other_world.as_deref(), common),
        Verb::Compare {
            specs,
            pairs,
            players,
            latex,
        } => compare::compare(specs, pairs, players, latex.latex, common),
        Verb::Sweep {
            specs,
            over,
            pairs,
            players,
            latex,
        } => sweep::sweep(specs, over, pairs, players, latex.latex, common),
        Verb::Merge { parts, latex, .. } => merge::merge(parts, latex.latex, common),
        Verb::Seal { file, .. } => seal::seal(file, common),
        Verb::Serve(args) => serve::serve(args, common),
        Verb::Audit {
            source,
            experiment,
            head,
            access,
        } => audit::audit(
            source,
            experiment.as_deref(),
            head.as_deref(),
            &access.access()?,
            common,
        ),
        Verb::Diff {
            first,
            second,
            access,
        } => diff::diff(first, second, &access.access()?, common),
        Verb::Keys { action, store } => keys::keys(action, &store.location(), common),
        Verb::Backup { store, to } => backup::backup(&store.location(), to, common),
        Verb::Schema => {
            commands::print(&debora::spec::schema())?;
            Ok(true)
        }
        Verb::Ready { listen } => ready::ready(listen, common),
        Verb::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), folder)
                .with_context(|| format!("cannot write into {}", folder.display()))?;
            Ok(true)
        }
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "debora", &mut script);
            // Through `print`, as scripts are often piped into a reader that stops early.
            commands::print(&String::from_utf8(script).context("completions are text")?)?;
            Ok(true)
        }
    }
}
