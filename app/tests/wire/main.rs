//! Everything that the service and the program say of one store, byte for byte as it is kept in `golden`.
//!
//! ```text
//! fixed keys, random bytes and times ─► service ─► store ─┬─► every GET route, and what requests were answered ─► golden/http
//!                                                         └─► every verb of the program ─► golden/verbs
//! ```
//!
//! `DEBORA_WIRE=1 cargo test -p debora-cli --test wire` writes the files anew: a change of them is a change of what users see.

mod golden;
mod house;
#[path = "../kit/mod.rs"]
mod kit;
mod live;
mod masked;
mod routes;
mod verbs;

use std::thread;

use golden::Goldens;
use house::House;

use crate::kit::scratch::Scratch;

/// One test and not two: the verbs are run on the store that the service has left.
#[tokio::test]
async fn what_is_said_is_what_is_kept() {
    let specs = thread::spawn(|| {
        let mut verbs = Goldens::new("verbs");
        verbs::of_specs(&Scratch::new("wire-specs"), &mut verbs);
        verbs
    });
    let mut http = Goldens::new("http");
    let empty = House::new();
    routes::of_an_empty_store(&empty, &mut http).await;
    empty.stop();
    let house = House::new();
    live::play(&house, &mut http).await;
    routes::all(&house, &mut http).await;
    routes::every_route_is_kept(&house, &http).await;
    house.stop();
    let mut verbs = specs.join().expect("what specs have said");
    verbs::of_a_store(&house.folder, &mut verbs);
    verbs::every_verb_is_kept(&verbs);
    let differences = [http.settle(), verbs.settle()].concat();
    assert!(differences.is_empty(), "{differences}");
}
