//! A service of up to three nodes lives at a simulated database. The order of all that happens, every failure and every time follow
//! from a seed: nothing sleeps, and a life that goes wrong is lived again by its seed.
//!
//! Nodes are killed and started, clocks jump, connections are lost, answers of commits are lost, the database goes back. Of what was
//! acknowledged nothing may be missing, unless the database went back; then the node that acknowledged it must say so before it
//! hands out anything. No outcome may be imputed before its time, each must be once its time is over, and the audit must find all
//! equal.
//!
//! `DEBORA_LIVES` says how many lives (default 30; 1,000 in `./check long`), and `DEBORA_LIFE=7` lives the one with that seed.

mod database;
mod life;
mod model;

use std::panic::{AssertUnwindSafe, catch_unwind};

use life::{Had, Life, Planted};

/// The last steps of a life that went wrong: more than that led nowhere but here.
const STEPS_SHOWN: usize = 40;

/// Lives with this seed; what happened, and what went wrong if something did.
fn live(seed: u64, planted: Planted) -> (Vec<String>, Result<Had, String>) {
    let mut trace = Vec::new();
    let life = AssertUnwindSafe(|| Life::new(seed, planted, &mut trace).live());
    let lived = catch_unwind(life).map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        said.or(panic.downcast_ref::<&str>().map(|said| (*said).to_owned()))
            .unwrap_or_default()
    });
    let lived = lived.map_err(|said| {
        let shown = trace.len().saturating_sub(STEPS_SHOWN);
        let steps = trace[shown..].join("\n  ");
        format!(
            "seed {seed}: {said}\n  {steps}\nDEBORA_LIFE={seed} cargo test -p debora-cli --test lives simulation lives it again"
        )
    });
    (trace, lived)
}

fn number(name: &str) -> Option<u64> {
    let set = std::env::var(name).ok()?;
    Some(set.parse().expect("a number"))
}

#[test]
fn whatever_fails_nothing_acknowledged_is_lost_and_nothing_is_early() {
    let seeds = match number("DEBORA_LIFE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DEBORA_LIVES").unwrap_or(30),
    };
    let many = seeds.end - seeds.start >= 30;
    let mut all = Had::default();
    for seed in seeds {
        let had = live(seed, Planted::Nothing)
            .1
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        all.failures += had.failures;
        all.starts += had.starts;
        all.goings_back += had.goings_back;
        all.told_of_going_back += had.told_of_going_back;
        all.imputed += had.imputed;
        all.late += had.late;
    }
    println!("{all:?}");
    // What the lives are meant to hold.
    let least = [all.failures, all.starts, all.imputed].into_iter().min();
    assert!(!many || least >= Some(100), "{all:?}");
    let least = [all.goings_back, all.told_of_going_back, all.late]
        .into_iter()
        .min();
    assert!(!many || least >= Some(10), "{all:?}");
}

/// What is wrong on purpose is found within a few lives, with its seed.
#[test]
fn what_is_planted_is_found() {
    for (planted, said) in [
        (
            Planted::DroppedCommits,
            ["is gone", "of the lease", "are gone", "again"].as_slice(),
        ),
        (Planted::FastClocks, ["is imputed after"].as_slice()),
    ] {
        let found = (0..10).find_map(|seed| live(seed, planted).1.err().map(|wrong| (seed, wrong)));
        let (seed, wrong) = found.unwrap_or_else(|| panic!("{planted:?} is not found"));
        assert!(said.iter().any(|said| wrong.contains(said)), "{wrong}");
        assert!(wrong.starts_with(&format!("seed {seed}: ")), "{wrong}");
    }
}

#[test]
fn a_seed_is_a_life() {
    let (first, again) = (live(5, Planted::Nothing).0, live(5, Planted::Nothing).0);
    assert!(first.len() > 100);
    assert_eq!(first, again);
}
