//! What may be stored and answered at most.

use serde_json::{Value, json};

use crate::{House, SHORT};

/// A spec with these names of two actions, an experiment and a reward.
fn named(action: &str, name: &str) -> String {
    format!(
        "name = {}\npolicy = 'free'\nhorizon = 1_000_000\nrho = 0.9\nactions = [{}, 'b']\n[service]\non_wait = 'serve'\n",
        json!(name),
        json!(action)
    )
}

async fn create(house: &House, id: &str, spec: &str) -> crate::Reply {
    let body = json!({ "id": id, "spec": spec, "blind": true });
    house.post("/v1/experiments", &body).await
}

#[tokio::test]
async fn names_and_specs_that_are_too_long_are_refused_with_the_rule() {
    let house = House::new();
    let long = "a".repeat(3 << 20);
    let body = create(&house, "e", &named(&long, "x"))
        .await
        .refused(422, "too_long");
    assert_eq!(
        (&body["rule"], body["value"].as_u64() > Some(3 << 20)),
        (&json!("at most 1048576 bytes"), true)
    );
    let many: Vec<String> = (0..9_000).map(|action| format!("'{action}'")).collect();
    let many = format!(
        "policy = 'soft'\nhorizon = 100000000\nrho = 0.9\nactions = [{}]\n[[cost]]\nname = 'c'\nthreshold = 0.5\n",
        many.join(", ")
    );
    let body = create(&house, "e", &many).await.refused(422, "estimates");
    assert_eq!(body["value"], 18_000);
    for (action, name) in [
        ("a".repeat(129), "x".to_owned()),
        ("a".into(), "x".repeat(200_000)),
        ("a\n".into(), "x".into()),
        ("a".into(), "x\u{1}".into()),
    ] {
        let body = create(&house, "e", &named(&action, &name))
            .await
            .refused(422, "name");
        let message = body["message"].as_str().unwrap();
        assert!(
            message.contains("shorten") && message.len() < 1_000,
            "{message}"
        );
    }
    let listed = house.get("/v1/experiments").await.expect(200);
    assert_eq!(listed["experiments"], json!([]));
}

/// A refusal says what it refuses, and does not send all of it back.
#[tokio::test]
async fn a_refusal_does_not_grow_with_what_it_refuses() {
    let house = House::new();
    house.create("e", SHORT).await;
    // Each takes two bytes, and six when it is quoted.
    let long = "\u{85}".repeat(200_000);
    let outcome = json!({ "round": 1, "reward": 1, "costs": { &long: 0.01 } });
    for (path, body, words) in [
        (
            "e/decisions",
            json!({ "n": 1, "request_key": long }),
            "1 to 128 bytes",
        ),
        ("e/decisions", json!({ "n": long }), "mistyped fields"),
        (
            "e/decisions",
            json!({ "n": 1, &long: 1 }),
            "expected one of",
        ),
        ("e/outcomes", json!([outcome]), "the spec has"),
        ("e/pause", json!({ &long: "" }), "expected `reason`"),
        (
            "",
            json!({ "id": long, "spec": SHORT }),
            "1 to 128 lower-case",
        ),
        ("", json!({ "spec": long }), "not TOML"),
    ] {
        let path = format!("/v1/experiments/{path}");
        let refused = house.post(path.trim_end_matches('/'), &body).await;
        let text = refused.text();
        assert_eq!(refused.status, 422, "{path}: {:.999}", text);
        assert!(text.len() < 64 << 10, "{path}: {} bytes", text.len());
        assert!(text.contains(words), "{path}: {text}");
    }
}

/// The longest names, written as long as JSON can make them.
#[tokio::test]
async fn ten_thousand_decisions_of_the_longest_names_stay_within_the_bound() {
    let house = House::new();
    create(&house, "e", &named(&"\"".repeat(128), &"x".repeat(128)))
        .await
        .expect(201);
    let reply = house
        .post("/v1/experiments/e/decisions", &json!({ "n": 10_000 }))
        .await;
    let decisions = reply.expect(200)["decisions"].as_array().unwrap().len();
    assert!(decisions > 100, "{decisions}");
    let per_decision = reply.bytes.len() / decisions;
    assert!(per_decision * 10_000 < 8 << 20, "{per_decision}");
}

/// Experiments that were created before there were limits get shorter answers, and the same again for the same key.
#[tokio::test]
async fn long_names_that_are_stored_already_shorten_the_answer() {
    let mut house = House::new();
    create(&house, "e", &named("a", "x")).await.expect(201);
    let debora_cli::store::Location::Sqlite(path) = house.location() else {
        unreachable!()
    };
    house.service.stop().unwrap();
    rename(&path, &"a".repeat(3 << 20));
    house.restart();
    let ask = json!({ "n": 10_000, "request_key": "k" });
    let reply = house.post("/v1/experiments/e/decisions", &ask).await;
    let decisions = reply.expect(200)["decisions"].as_array().unwrap().len();
    assert!((1..=2).contains(&decisions) && reply.bytes.len() < 9 << 20);
    let again = house.post("/v1/experiments/e/decisions", &ask).await;
    assert_eq!(again.bytes, reply.bytes);
}

/// Gives the first action of the one experiment another name, in its snapshot.
fn rename(path: &std::path::Path, name: &str) {
    use debora::{Engine, Key, spec::Spec};
    let connection = rusqlite::Connection::open(path).unwrap();
    let key: String = connection
        .query_row("SELECT key FROM experiments", [], |row| row.get(0))
        .unwrap();
    let spec = Spec::parse(&named(name, "x"), "spec").unwrap();
    let engine = Engine::new(spec.problem, Key::from_hex(&key).unwrap());
    let changed = connection
        .execute("UPDATE epochs SET snapshot = ?1", [engine.to_bytes()])
        .unwrap();
    assert_eq!(changed, 1);
}

#[tokio::test]
async fn the_list_comes_in_pages_from_both_ends() {
    let house = House::new();
    let ids = ["a", "b", "c", "d", "e"];
    for id in ids {
        house.create(id, SHORT).await;
    }
    let mut seen: Vec<Value> = Vec::new();
    let mut path = "/v1/experiments?limit=2".to_owned();
    loop {
        let page = house.get(&path).await.expect(200);
        let experiments = page["experiments"].as_array().unwrap();
        assert!(experiments.len() <= 2);
        seen.extend(experiments.iter().map(|listed| listed["id"].clone()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/experiments?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(json!(seen), json!(ids));
    let full = house.get("/v1/experiments?limit=5").await.expect(200);
    assert_eq!(full["next"], Value::Null);
    for limit in ["0", "1001"] {
        let path = format!("/v1/experiments?limit={limit}");
        house.get(&path).await.refused(422, "unfit");
    }
    let page = house.get("/?before=c").await.text();
    let place = |id: &str| page.find(&format!("/experiments/{id}\""));
    assert!(place("c").is_none() && place("b") < place("a"), "{page}");
}

#[tokio::test]
async fn a_reason_is_kept_with_the_change() {
    let house = House::new();
    house.create("e", SHORT).await;
    let pause = "/v1/experiments/e/pause";
    for (reason, code) in [("x".repeat(1_001), "too_long"), ("x\u{0}".into(), "reason")] {
        let body = json!({ "reason": reason });
        house.post(pause, &body).await.refused(422, code);
    }
    house.post_text(pause, "[]").await.refused(422, "unfit");
    house
        .post(pause, &json!({ "reason": "new prices" }))
        .await
        .expect(200);
    let log = house.get("/v1/experiments/e/log").await.text();
    assert!(log.contains("\"reason\":\"new prices\""), "{log}");
}

/// A page of the log is short in bytes, too, and its pages are the whole log.
#[tokio::test]
async fn pages_of_the_log_are_bounded_in_bytes() {
    let house = House::new();
    // An exploration long enough for all of it: overtime is drawn more slowly.
    let spec = named("a", "x")
        .replace("1_000_000", "1e12")
        .replace("0.9", "0.001");
    create(&house, "e", &spec).await.expect(201);
    for _ in 0..40 {
        let decided = house.post_text("/v1/experiments/e/decisions", "{\"n\":10000}");
        assert_eq!(decided.await.status, 200);
    }
    let (mut path, mut pages, mut decisions) = ("/v1/experiments/e/log".to_owned(), 0, 0);
    loop {
        let reply = house.get(&path).await;
        assert!(reply.bytes.len() < 2 << 20, "{}", reply.bytes.len());
        pages += 1;
        decisions += reply.text().matches("\"asked\":10000").count();
        match reply.headers.get("debora-next") {
            Some(next) => {
                path = format!("/v1/experiments/e/log?after={}", next.to_str().unwrap());
            }
            None => break,
        }
    }
    assert!(pages > 1);
    assert_eq!(decisions, 40);
}
