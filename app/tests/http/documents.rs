//! Certificate and seal within the pages, in every state of an experiment, and all files in one place.

use debora_cli::store::Role;
use serde_json::json;

use crate::access::{set_key, token};
use crate::admin::{browse, log_in};
use crate::pages::{form, shows};
use crate::{House, KEY, SHORT, outcomes};

/// Every file but the certificate's, which is there at the end.
const FILES: [&str; 4] = [
    "/v1/experiments/e/log/download",
    "/v1/experiments/e/seal.html",
    "href=\"/v1/experiments/e/seal\"",
    "/experiments/e/report.html",
];

/// Decides and tells some rounds.
async fn play(house: &House, id: &str, leases: usize) {
    for _ in 0..leases {
        let decided = house.decide(id, 64).await;
        house.tell(id, &outcomes(&decided, 1.0, 0.01)).await;
    }
}

#[tokio::test]
async fn before_the_end_the_certificate_page_says_when_there_will_be_one() {
    let house = House::new();
    house.create("e", SHORT).await;
    let none = house.get("/experiments/e/certificate").await;
    shows(
        &none,
        200,
        &[
            "There is no certificate yet",
            "0 of 64 rounds are decided; it will be there once all are decided and have their outcomes, or when an admin closes",
            "There is one once the experiment is over",
            "aria-current=\"page\">Certificate",
        ],
    );
    shows(&none, 200, &FILES);
    assert!(
        !none.text().contains("certificate.html"),
        "a file that is not there"
    );
    form(&house, "/experiments/e/pause", &[], "").await;
    shows(
        &house.get("/experiments/e/certificate").await,
        200,
        &["The experiment is paused: until it is resumed"],
    );
    form(&house, "/experiments/e/resume", &[], "").await;
    play(&house, "e", 3).await;
    shows(
        &house.get("/experiments/e/certificate").await,
        200,
        &["3 of 64 rounds are decided"],
    );
    // Programs are refused as before.
    house
        .get("/v1/experiments/e/certificate")
        .await
        .refused(409, "not_over");
    assert_eq!(house.get("/experiments/none/certificate").await.status, 404);
}

#[tokio::test]
async fn with_all_rounds_decided_only_outcomes_are_missing() {
    let house = House::new();
    let spec = SHORT.replace("horizon = 64", "horizon = 2");
    house.create("e", &spec).await;
    play(&house, "e", 1).await;
    house.decide("e", 1).await;
    shows(
        &house.get("/experiments/e/certificate").await,
        200,
        &["2 of 2 rounds are decided; it will be there once their outcomes are told or imputed."],
    );
    house
        .tell(
            "e",
            &json!([{ "round": 2, "reward": 1, "costs": { "price": 0.01 } }]),
        )
        .await;
    let done = house.get("/experiments/e/certificate").await;
    shows(
        &done,
        200,
        &[
            "Done: all 2 rounds were decided",
            "/v1/experiments/e/certificate.html",
        ],
    );
    shows(&done, 200, &FILES);
}

#[tokio::test]
async fn the_end_and_the_seal_have_the_frame_of_the_experiment() {
    let house = House::new();
    house.create("e", SHORT).await;
    let seal = house.get("/experiments/e/seal").await;
    shows(
        &seal,
        200,
        &[
            "<h1><bdi>short epochs</bdi></h1>",
            "aria-current=\"true\">Seal",
            "What is fixed before the first decision",
        ],
    );
    shows(&seal, 200, &FILES);
    form(&house, "/experiments/e/close", &[], "").await;
    let closed = house.get("/experiments/e/certificate").await;
    shows(
        &closed,
        200,
        &[
            "Closed by loopback after 0 of 64 rounds",
            "How to verify it",
            "href=\"/v1/experiments/e/certificate\"",
        ],
    );
    assert_eq!(closed.text().matches("<h1>").count(), 1);
    // What is mailed alone has its title within.
    let file = house.get("/v1/experiments/e/certificate.html").await;
    shows(&file, 200, &["<h1>Certificate of short epochs</h1>"]);
    // A table that scrolls is reached by keyboard, and its columns have names.
    shows(
        &closed,
        200,
        &[
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\"",
            "<th scope=\"col\">action</th>",
        ],
    );
}

#[tokio::test]
async fn the_audit_is_run_elsewhere_by_three_commands() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 2).await;
    let head = house.state("e").await["head"].as_str().unwrap().to_owned();
    let by_log = format!("debora audit e.jsonl --head {head}");
    let by_store = "debora audit STORE --experiment e";
    let commands = [
        "debora audit http://127.0.0.1:8080/experiments/e",
        &by_log,
        by_store,
    ];
    let page = house.get("/experiments/e/audit").await;
    shows(&page, 200, &commands);
    shows(
        &page,
        200,
        &["not that it is honest", "/v1/experiments/e/log/download"],
    );
    assert!(!page.text().contains("DEBORA_API_KEY"), "there are no keys");
    assert_eq!(house.get("/experiments/none/audit").await.status, 404);
    assert_eq!(
        house.post("/experiments/e/audit", &json!({})).await.status,
        405
    );

    set_key(&house, "reader", Role::Read, None);
    house.wait(2_000);
    let strangers = house.get("/experiments/e/audit").await;
    assert_eq!(
        strangers.headers["location"],
        "/login?next=%2Fexperiments%2Fe%2Faudit"
    );
    let reader = log_in(&house, &token("reader")).await;
    let page = browse(&house, "/experiments/e/audit", &reader).await;
    shows(
        &page,
        200,
        &["export DEBORA_API_KEY", "only role admin sees the key"],
    );
    assert!(!page.text().contains(KEY));
}
