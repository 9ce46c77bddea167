//! The server is killed in the middle of everything, again and again, while clients repeat what was not answered.
//!
//! Afterwards nothing acknowledged may be missing, nothing may be there twice, and the decisions must be those of an engine
//! that nobody disturbed, told the same outcomes. `DEBORA_CRASH_KILLS` says how often (default 20; the results of 200 are
//! in docs/service.md).

use std::process::{Command, Stdio};

use crate::kit::play::{Cluster, disturbed, serve};
use crate::kit::scratch::Scratch;

fn kills() -> u64 {
    std::env::var("DEBORA_CRASH_KILLS").map_or(20, |kills| {
        kills.parse().expect("DEBORA_CRASH_KILLS is a number")
    })
}

fn cluster(store: &str, nodes: usize) -> Cluster {
    let launched = store.to_owned();
    Cluster::start(store, nodes, move |listen| serve(&launched, listen))
}

#[test]
fn a_killed_server_on_sqlite_loses_and_doubles_nothing() {
    let folder = Scratch::new("crash");
    let store = folder.join("store.db").display().to_string();
    disturbed(cluster(&store, 1), kills(), |play, _| {
        play.cluster.kill(0, || {})
    });
}

/// Every fifth time the database itself is stopped at once and started again.
#[test]
fn killed_nodes_on_postgresql_lose_and_double_nothing() {
    let variable = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set; use scripts/with-postgres"))
    };
    let (url, restart) = (
        variable("DEBORA_TEST_POSTGRES"),
        variable("DEBORA_TEST_POSTGRES_RESTART"),
    );
    disturbed(cluster(&url, 2), kills(), |play, kill| {
        if kill % 5 == 4 {
            assert!(
                Command::new(&restart)
                    .stdout(Stdio::null())
                    .status()
                    .unwrap()
                    .success()
            );
        } else {
            play.cluster.kill((kill % 2) as usize, || {});
        }
    });
}
