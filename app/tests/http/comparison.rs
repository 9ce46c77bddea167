//! Two experiments compared by their service: the same as the program says of their logs, and no more than the caller may know.

use std::io::Cursor;

use axum::body::Body;
use axum::http::Request;
use debora_cli::audit::{Diff, Log, compared, diff};
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::pages::shows;
use crate::{House, Reply, SHORT};

/// Each action is estimated at two counts at least, of means far apart.
const LEVELS: &str = r#"
policy = "soft"
horizon = 2_000
rho = 0.99
delta = 0.9
growth = 2
actions = ["a", "b"]
"#;

/// Plays a whole experiment in which the first action gives this reward, and the second the rest.
async fn live(house: &House, id: &str, first: f64) {
    house.create(id, LEVELS).await;
    loop {
        let path = format!("/v1/experiments/{id}/decisions");
        let decided = house.post(&path, &json!({ "n": 64 })).await;
        if decided.status != 200 {
            return;
        }
        let outcome = |decision: &Value| {
            let reward = if decision["action"] == 0 {
                first
            } else {
                1.0 - first
            };
            json!({ "round": decision["round"], "reward": reward })
        };
        let decided = decided.json();
        let decided = decided["decisions"].as_array().unwrap();
        let outcomes: Value = decided.iter().map(outcome).collect();
        house.tell(id, &outcomes).await;
    }
}

/// What the program says of the downloaded logs, outcomes and all.
async fn by_program(house: &House, ids: [&str; 2]) -> Diff {
    let mut logs = Vec::new();
    for id in ids {
        let log = house
            .get(&format!("/v1/experiments/{id}/log/download"))
            .await;
        logs.push(Log::text(Box::new(Cursor::new(log.text())), None));
    }
    let logs: [Log; 2] = logs
        .try_into()
        .unwrap_or_else(|_| unreachable!("there are two"));
    diff(logs).unwrap()
}

#[tokio::test]
async fn the_page_says_what_the_program_says() {
    let house = House::new();
    live(&house, "one", 0.9).await;
    live(&house, "two", 0.1).await;
    live(&house, "same", 0.9).await;
    for (other, diverges) in [("two", true), ("same", false)] {
        let expected = by_program(&house, ["one", other]).await;
        assert_eq!(expected.divergence.is_some(), diverges);
        let answer = house
            .get(&format!("/v1/experiments/one/diff?with={other}"))
            .await;
        assert_eq!(answer.expect(200), serde_json::to_value(&expected).unwrap());
        let page = house
            .get(&format!("/experiments/one/diff?with={other}"))
            .await;
        let told = serde_json::to_value(compared(&expected)).unwrap();
        let sentences = told["items"][0]["paragraph"].as_array().unwrap();
        for span in sentences
            .iter()
            .flat_map(|sentence| sentence.as_array().unwrap())
        {
            let text = span["text"].as_str().unwrap().replace('"', "&quot;");
            shows(&page, 200, &[&text]);
        }
        // Each estimate in another cell is drawn once: its cells, and a dot for each side's mean.
        let estimates = expected
            .divergence
            .map_or(0, |one| one.diverging_estimates.len());
        let drawn = |class: &str| page.text().matches(&format!("class=\"{class}\"")).count();
        // The legend draws each sign once more.
        let expected = estimates + usize::from(diverges);
        assert_eq!([drawn("dot c0"), drawn("area c1 band")], [expected; 2]);
        assert_eq!(estimates > 0, diverges);
    }
}

#[tokio::test]
async fn one_chooses_among_what_one_may_read_and_is_told_what_is_wrong() {
    let house = House::new();
    for id in ["e", "twin"] {
        house.create(id, SHORT).await;
    }
    let other = json!({ "spec": SHORT, "id": "stranger", "blind": true });
    house.post("/v1/experiments", &other).await.expect(201);
    let page = house.get("/experiments/e/diff").await;
    shows(
        &page,
        200,
        &[
            "Compare with",
            "short epochs (same key)",
            "value=\"stranger\"",
        ],
    );
    let text = page.text();
    assert!(
        text.find("value=\"twin\"") < text.find("value=\"stranger\""),
        "the same key comes first"
    );
    assert!(!text.contains("value=\"e\""), "not with itself");
    for (with, status, words) in [
        ("e", 422, "cannot be compared with itself"),
        ("none", 404, "there is no experiment &quot;none&quot;"),
        ("%00", 404, "there is no experiment"),
        ("%3Cb%3E", 404, "&lt;b&gt;"),
    ] {
        let page = house.get(&format!("/experiments/e/diff?with={with}")).await;
        shows(&page, status, &[words, "Compare with another"]);
        assert!(!page.text().contains("<b>"));
        let answer = house
            .get(&format!("/v1/experiments/e/diff?with={with}"))
            .await;
        assert_eq!(answer.status.as_u16(), status);
    }
    // Blanks around what was pasted mean nothing.
    shows(
        &house.get("/experiments/e/diff?with=%20twin%20").await,
        200,
        &["The same decisions throughout: 0 rounds"],
    );
    house
        .get("/v1/experiments/e/diff")
        .await
        .refused(422, "unfit");
    assert_eq!(house.get("/experiments/none/diff").await.status, 404);
}

/// Whether two running experiments share a key is for those who may see the key, until their logs tell.
#[tokio::test]
async fn a_reader_learns_of_a_shared_key_once_it_is_no_secret() {
    let house = House::new();
    for id in ["e", "twin"] {
        house.create(id, SHORT).await;
    }
    set_key(&house, "reader", Role::Read, None);
    house.wait(2_000);
    let ask = |path: &'static str| as_reader(&house, path);
    let page = ask("/experiments/e/diff?with=twin").await;
    shows(
        &page,
        200,
        &["Whether they share a key is unknown", "value=\"twin\""],
    );
    assert!(!page.text().contains("same key"), "{}", page.text());
    assert_eq!(
        ask("/v1/experiments/e/diff?with=twin").await.expect(200)["same_key"],
        Value::Null
    );
    for id in ["e", "twin"] {
        let path = format!("/v1/experiments/{id}/close");
        let request =
            Request::post(path).header("authorization", format!("Bearer {}", token("boss")));
        set_key(&house, "boss", Role::Admin, None);
        house.wait(2_000);
        house
            .send(request.body(Body::empty()).unwrap())
            .await
            .expect(200);
    }
    let page = ask("/experiments/e/diff?with=twin").await;
    shows(&page, 200, &["they share a key", "(same key)"]);
}

async fn as_reader(house: &House, path: &str) -> Reply {
    let request = Request::get(path).header("authorization", format!("Bearer {}", token("reader")));
    house.send(request.body(Body::empty()).unwrap()).await
}
