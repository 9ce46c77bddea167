//! An experiment's life: created, decided, told, paused, resumed, closed, done.

use debora::spec::Spec;
use debora::{Ask, Engine, Key};
use serde_json::{Value, json};

use crate::{House, KEY, SHORT, outcomes};

/// What an action gives in a round, so that estimates and strategies come to depend on it.
fn outcome(round: u64, index: u64) -> (f64, f64) {
    let high = (round * 7 + index * 3) % 10 < 4 + 4 * index;
    (f64::from(u8::from(high)), [0.002, 0.018][index as usize])
}

#[tokio::test]
async fn decisions_are_those_of_an_engine_with_the_same_key_across_a_restart() {
    let mut house = House::new();
    house.create("e", SHORT).await;
    let mut engine = Engine::new(
        Spec::parse(SHORT, "spec").unwrap().problem,
        Key::from_hex(KEY).unwrap(),
    );
    while !engine.is_done() {
        let answer = house.decide("e", 5).await;
        let decisions = answer["decisions"].as_array().unwrap();
        let mut told = Vec::new();
        for decision in decisions {
            let Ask::Decision(expected) = engine.ask() else {
                panic!("the engine has no decision for {decision}")
            };
            let name = &engine.problem().actions()[expected.action as usize];
            let expected_line = json!({ "round": expected.round, "epoch": expected.epoch, "action": expected.action,
                "name": name, "probability": expected.probability });
            assert_eq!(*decision, expected_line);
            let (reward, price) = outcome(expected.round, u64::from(expected.action));
            told.push(json!({ "round": expected.round, "reward": reward, "costs": [price] }));
        }
        // Told backwards, which must not matter.
        told.reverse();
        house.tell("e", &Value::Array(told)).await;
        for decision in decisions {
            let (round, index) = (
                decision["round"].as_u64().unwrap(),
                decision["action"].as_u64().unwrap(),
            );
            let (reward, price) = outcome(round, index);
            engine.tell(round, reward, &[price]).unwrap();
        }
        if decisions[0]["round"] == 31 {
            house.restart();
        }
    }
    let state = house.state("e").await;
    assert_eq!(
        (&state["status"], &state["digest"]),
        (&json!("done"), &json!(engine.digest()))
    );
    assert_eq!(
        (&state["decided"], &state["outstanding"]),
        (&json!(64), &json!(0))
    );
    house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await
        .refused(409, "done");
    let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
    assert_eq!(
        (&certificate["digest"], &certificate["key"]),
        (&state["digest"], &json!(KEY))
    );
}

#[tokio::test]
async fn creating_draws_what_is_not_given_and_can_be_repeated() {
    let house = House::new();
    let drawn = house
        .post("/v1/experiments", &json!({ "spec": SHORT, "blind": true }))
        .await;
    let body = drawn.expect(201);
    let id = body["id"].as_str().unwrap();
    assert_eq!(drawn.headers["location"], format!("/v1/experiments/{id}"));
    assert_eq!(body["address"], format!("/v1/experiments/{id}"));
    let other = house
        .post("/v1/experiments", &json!({ "spec": SHORT, "blind": true }))
        .await
        .expect(201);
    assert_ne!(
        (&other["id"], &other["key_hash"]),
        (&body["id"], &body["key_hash"])
    );

    let named = json!({ "spec": SHORT, "id": "named", "key": "f00000000000000000000000000000ff", "blind": true });
    let first = house.post("/v1/experiments", &named).await.expect(201);
    assert_eq!(
        house.post("/v1/experiments", &named).await.expect(200),
        first
    );
    let otherwise = json!({ "spec": SHORT, "id": "named", "key": KEY, "blind": true });
    house
        .post("/v1/experiments", &otherwise)
        .await
        .refused(409, "id_taken");
    let shown = house.get("/v1/experiments/named").await.expect(200);
    assert_eq!(
        (&shown["key"], &shown["spec"]),
        (&json!("f00000000000000000000000000000ff"), &json!(SHORT))
    );
    assert_eq!(shown["plan"]["profile"], "paper");
    let list = house.get("/v1/experiments").await.expect(200);
    let ids: Vec<&str> = list["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [id, other["id"].as_str().unwrap(), "named"]);
    assert_eq!(list["experiments"][2]["horizon"], 64);
}

#[tokio::test]
async fn the_same_request_key_gets_the_same_answer() {
    let mut house = House::new();
    house.create("e", SHORT).await;
    let path = "/v1/experiments/e/decisions";
    let ask = json!({ "n": 1, "request_key": "one" });
    let first = house.post(path, &ask).await;
    house
        .tell("e", &outcomes(&first.expect(200), 1.0, 0.01))
        .await;
    let next = house.decide("e", 1).await;
    assert_eq!(house.post(path, &ask).await.bytes, first.bytes);
    house.restart();
    assert_eq!(house.post(path, &ask).await.bytes, first.bytes);
    assert_ne!(
        next["decisions"][0]["round"],
        first.json()["decisions"][0]["round"]
    );
    house
        .post(path, &json!({ "n": 2, "request_key": "one" }))
        .await
        .refused(409, "request_key_used");
}

#[tokio::test]
async fn outcomes_get_receipts() {
    let house = House::new();
    house.create("e", SHORT).await;
    let first = house.decide("e", 1).await;
    let told = outcomes(&first, 0.5, 0.01);
    let recorded = house.tell("e", &told).await;
    assert_eq!(recorded["receipts"], json!(["recorded"]));
    assert_eq!(
        house.tell("e", &told).await["receipts"],
        json!(["repeated"])
    );
    assert_eq!(
        house.tell("e", &outcomes(&first, 0.25, 0.01)).await["receipts"],
        json!(["conflict"])
    );
    let mixed = json!([told[0], { "round": 60, "reward": 0.5, "costs": [0.01] }]);
    let mixed = house.tell("e", &mixed).await;
    assert_eq!(mixed["receipts"], json!(["repeated", "unknown"]));
    let counts = json!({ "recorded": 0, "repeated": 1, "conflict": 0, "unknown": 1, "late": 0, "overtime": 0, "holdback": 0 });
    assert_eq!(mixed["counts"], counts);
    assert_eq!(house.tell("e", &json!([])).await["receipts"], json!([]));
}

#[tokio::test]
async fn a_paused_experiment_learns_and_a_closed_one_does_not() {
    let house = House::new();
    house.create("e", SHORT).await;
    let decided = house.decide("e", 1).await;
    assert_eq!(
        house
            .post_text("/v1/experiments/e/pause", "")
            .await
            .expect(200)["status"],
        "paused"
    );
    house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await
        .refused(409, "paused");
    assert_eq!(
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await["receipts"],
        json!(["recorded"])
    );
    assert_eq!(
        house
            .post_text("/v1/experiments/e/resume", "")
            .await
            .expect(200)["status"],
        "running"
    );
    let decided = house.decide("e", 1).await;
    house
        .get("/v1/experiments/e/certificate")
        .await
        .refused(409, "not_over");
    assert_eq!(
        house
            .post_text("/v1/experiments/e/close", "")
            .await
            .expect(200)["status"],
        "closed"
    );
    assert_eq!(
        house
            .post_text("/v1/experiments/e/close", "")
            .await
            .expect(200)["status"],
        "closed"
    );
    house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await
        .refused(409, "closed");
    house
        .post("/v1/experiments/e/outcomes", &outcomes(&decided, 1.0, 0.01))
        .await
        .refused(409, "closed");
    house
        .post_text("/v1/experiments/e/resume", "")
        .await
        .refused(409, "closed");
    assert_eq!(
        house.get("/v1/experiments/e/certificate").await.expect(200)["status"],
        "closed"
    );
}

#[tokio::test]
async fn the_state_is_in_the_specs_units() {
    let house = House::new();
    let spec = "policy = 'soft'\nhorizon = 20_000\nrho = 0.5\nactions = ['small', 'large']\n[reward]\nname = 'quality'\n\
        range = [0, 10]\n[[cost]]\nname = 'price'\nrange = [0.0, 0.02]\nthreshold = 0.008\n";
    house.create("e", spec).await;
    for _ in 0..40 {
        let decided = house.decide("e", 10_000).await;
        let outcome = |decision: &Value| {
            let (reward, price) =
                [(5.0, 0.001), (7.5, 0.015)][decision["action"].as_u64().unwrap() as usize];
            json!({ "round": decision["round"], "reward": reward, "costs": { "price": price } })
        };
        house
            .tell(
                "e",
                &decided["decisions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(outcome)
                    .collect(),
            )
            .await;
        if house.state("e").await["status"] == "done" {
            break;
        }
    }
    let state = house.state("e").await;
    assert_eq!(state["status"], "done");
    let counts: Vec<u64> = state["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["told"].as_u64().unwrap())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 20_000);
    let large = |quantity: &str| {
        let of = |e: &&Value| e["name"] == "large" && e["quantity"] == quantity;
        state["estimates"]
            .as_array()
            .unwrap()
            .iter()
            .find(of)
            .unwrap()
            .clone()
    };
    for (quantity, truth, range) in [("quality", 7.5, 10.0), ("price", 0.015, 0.02)] {
        let estimate = large(quantity);
        let value = |field: &str| estimate[field].as_f64().unwrap();
        assert!(
            value("low") <= truth && truth <= value("high"),
            "{estimate}"
        );
        assert!(
            value("high") - value("low") < 0.7 * range && value("high") <= range,
            "{estimate}"
        );
    }
    assert_eq!(
        (&large("price")["threshold"], &large("quality")["threshold"]),
        (&json!(0.008), &json!(null))
    );
    let recommended = &state["recommendation"];
    assert!(
        recommended["strategy"]["large"].as_f64().unwrap() > 0.3,
        "{recommended}"
    );
    assert!(
        recommended["expected"][1]["low"].as_f64().unwrap() <= 0.008,
        "{recommended}"
    );
}

/// Policy free keeps no threshold, but shows what the spec says of it, and everywhere the same.
#[tokio::test]
async fn state_page_and_certificate_agree_about_thresholds() {
    for policy in ["free", "soft"] {
        let house = House::new();
        let spec = format!(
            "policy = '{policy}'\nhorizon = 2000\nrho = 0.5\nprofile = 'paper'\nactions = ['small', 'large']\n\
             [[cost]]\nname = 'price'\nrange = [0.0, 0.02]\nthreshold = 0.007\n"
        );
        house.create("e", &spec).await;
        let decided = house.decide("e", 2).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
        let page = house.get("/experiments/e").await.text();
        assert!(page.contains("the threshold is 0.007"), "{page}");
        assert_eq!(page.contains("policy free does not keep"), policy == "free");
        house
            .post("/v1/experiments/e/close", &json!({}))
            .await
            .expect(200);
        let state = house.state("e").await;
        let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
        let thresholds = |list: &Value| -> Vec<Value> {
            let list = list.as_array().unwrap().iter();
            list.map(|quantity| quantity["threshold"].clone()).collect()
        };
        let expected = [json!(null), json!(0.007)];
        let stated = thresholds(&state["recommendation"]["expected"]);
        let certified = thresholds(&certificate["recommendation"]["quantities"]);
        assert_eq!(
            (&stated[..], &certified[..]),
            (&expected[..], &expected[..])
        );
        assert_eq!(state["actions"], certificate["actions"]);
    }
}

#[tokio::test]
async fn the_log_has_pages_that_join() {
    let house = House::new();
    house.create("e", SHORT).await;
    for _ in 0..5 {
        let decided = house.decide("e", 3).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    let whole = house.get("/v1/experiments/e/log?limit=10000").await;
    assert_eq!(whole.headers["content-type"], "application/x-ndjson");
    assert!(whole.headers.get("debora-next").is_none());
    let (mut joined, mut after) = (String::new(), String::new());
    loop {
        let page = house
            .get(&format!("/v1/experiments/e/log?limit=3{after}"))
            .await;
        assert!(page.text().lines().count() <= 3);
        joined += &page.text();
        match page.headers.get("debora-next") {
            None => break,
            Some(next) => after = format!("&after={}", next.to_str().unwrap()),
        }
    }
    assert_eq!(joined, whole.text());
    assert!(
        joined.lines().count() > 15
            && joined
                .lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    house
        .get("/v1/experiments/e/log?after=nowhere")
        .await
        .refused(422, "cursor");
    house
        .get("/v1/experiments/e/log?limit=0")
        .await
        .refused(422, "unfit");
    house
        .get("/v1/experiments/e/log?limit=10001")
        .await
        .refused(422, "unfit");
    house
        .get("/v1/experiments/e/log?page=1")
        .await
        .refused(422, "unfit");
}

/// Rewards far apart: policy free commits, says so in words, and never waits again.
#[tokio::test]
async fn a_commitment_is_told_on_every_surface() {
    let house = House::new();
    let spec = "policy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b']\n";
    house.create("e", spec).await;
    // The key is drawn: its threshold may be above what 64 rounds each can show, never what 507 can.
    while house.state("e").await["kind"] != "commit" {
        let decided = house.decide("e", 2_000).await;
        let told = decided["decisions"].as_array().unwrap().iter().map(
            |decision| json!({ "round": decision["round"], "reward": decision["action"], "costs": [] }),
        );
        house.tell("e", &told.collect()).await;
    }
    house.decide("e", 10_000).await;
    let state = house.state("e").await;
    assert_eq!(
        (&state["waiting"], &state["outstanding"]),
        (&json!(false), &json!(10_000))
    );
    assert_eq!(state["test"]["leader"], "b");
    assert_eq!(state["test"]["passed"], true);
    let words = state["committed"].as_str().unwrap();
    assert!(
        words.starts_with("b was 1 ahead in reward after "),
        "{words}"
    );
    assert!(words.contains("closed without loss"), "{words}");
    let cautious = &state["recommendation"]["cautious"];
    assert_eq!(cautious["strategy"], json!({ "a": 0.0, "b": 1.0 }));
    let page = house.get("/experiments/e").await.text();
    assert!(page.contains("b was 1 ahead in reward after "), "{page}");
}
