//! A share of requests that stays outside the experiment: who, what they get, what is shown of them, and that nothing else changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use debora::Key;
use debora::key::Label;
use debora_cli::audit::{Log, Verdict, audit};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::flags::equal;
use crate::{House, KEY, Reply, SHORT, short_with};

const SHARE: f64 = 0.25;

fn held_back() -> String {
    short_with("holdback = { share = 0.25, action = 'left' }")
}

/// Whether a request key is held back, by the published rule and without the service.
fn belongs_outside(request_key: &str) -> bool {
    let hash = Sha256::digest(request_key);
    let word = |from: usize| u64::from_le_bytes(hash[from..from + 8].try_into().unwrap());
    let key = Key::from_hex(KEY).unwrap();
    key.uniform(Label::Holdback, [word(0), word(8), 0]) < SHARE
}

async fn ask(house: &House, id: &str, n: u64, request_key: &str) -> Reply {
    let body = json!({ "n": n, "request_key": request_key });
    house
        .post(&format!("/v1/experiments/{id}/decisions"), &body)
        .await
}

/// The first of some names that is held back, or not.
fn name(outside: bool) -> String {
    let mut names = (0..).map(|number| format!("user-{number}"));
    names.find(|name| belongs_outside(name) == outside).unwrap()
}

/// What comes of an action in a round.
fn outcome(decision: &Value) -> Value {
    let right = decision["action"] == 1;
    let mut outcome = json!({ "reward": if right { 0.9 } else { 0.2 }, "costs": [0.004] });
    match decision["round"].as_u64() {
        Some(round) => outcome["round"] = round.into(),
        None => {
            outcome["epoch"] = decision["epoch"].clone();
            outcome["holdback"] = decision["holdback"].clone();
        }
    }
    outcome
}

/// Asks and tells for one user after the other until the horizon; what the rounds were given, in order.
async fn play(house: &House, id: &str) -> Vec<(u64, u64)> {
    let mut given = Vec::new();
    for user in 0..2_000 {
        let reply = ask(house, id, 1, &format!("user-{user}")).await;
        if reply.status == 409 {
            reply.refused(409, "done");
            return given;
        }
        let decision = reply.expect(200)["decisions"][0].clone();
        house.tell(id, &json!([outcome(&decision)])).await;
        given.extend(decision["round"].as_u64().zip(decision["action"].as_u64()));
    }
    panic!("no end");
}

#[tokio::test]
async fn who_is_held_back_follows_from_the_key_and_the_request_key_alone() {
    let mut house = House::new();
    house.create("one", &held_back()).await;
    house.create("two", &held_back()).await;
    let names: Vec<String> = (0..400).map(|user| format!("user-{user}")).collect();
    let mut found = BTreeMap::new();
    for (place, name) in names.iter().enumerate() {
        if place == 200 {
            house.restart();
        }
        // Epochs of one round: nearly all who are inside are told to wait, and those outside never are.
        let reply = ask(&house, "one", 1, name).await;
        found.insert(
            name,
            reply.status == 200 && reply.json()["decisions"][0]["holdback"].is_u64(),
        );
    }
    for name in names.iter().rev() {
        let reply = ask(&house, "two", 1, name).await;
        let outside = reply.status == 200 && reply.json()["decisions"][0]["holdback"].is_u64();
        assert_eq!(outside, found[name], "{name}");
        assert_eq!(outside, belongs_outside(name), "{name}");
    }
    let outside = found.values().filter(|outside| **outside).count();
    assert!((70..=130).contains(&outside), "{outside} of 400");
}

#[tokio::test]
async fn the_experiment_is_the_one_without_a_holdback() {
    let house = House::new();
    house.create("with", &held_back()).await;
    house.create("without", SHORT).await;
    let (with, without) = (play(&house, "with").await, play(&house, "without").await);
    assert_eq!(with.len(), 64);
    assert_eq!(with, without);
    let [one, two] = [house.state("with").await, house.state("without").await];
    for field in [
        "digest",
        "decided",
        "epoch",
        "strategy",
        "actions",
        "estimates",
        "means",
        "limits",
        "sample_ratio",
        "recommendation",
        "overtime",
        "late",
        "imputed",
        "alerts",
    ] {
        assert_eq!(one[field], two[field], "{field}");
    }
    assert_eq!(two["holdback"], json!(null));
    assert!(one["holdback"]["decided"].as_u64() > Some(5), "{one}");
    // Specs differ, so the chains do.
    assert_ne!(one["head"], two["head"]);
}

#[tokio::test]
async fn those_outside_get_one_action_for_ever_even_while_others_wait() {
    let mut house = House::new();
    house.create("e", &held_back()).await;
    let (inside, outside) = (name(false), name(true));
    let first = ask(&house, "e", 3, &outside).await.expect(200);
    let decisions = first["decisions"].as_array().unwrap();
    assert_eq!((decisions.len(), &first["overtime"]), (3, &json!(false)));
    for (serial, decision) in (1..).zip(decisions) {
        let expected = json!({ "round": null, "holdback": serial, "epoch": 0, "action": 0, "name": "left", "probability": 1.0 });
        assert_eq!(*decision, expected);
    }
    let round = ask(&house, "e", 1, &inside).await.expect(200);
    assert_eq!(round["decisions"][0]["round"], 1);
    // The epoch has one round, and waits for it: others are turned away.
    let late = (0..).map(|number| format!("late-{number}"));
    let late: Vec<String> = late.take(40).collect();
    let [waits, served] = [false, true].map(|outside| {
        late.iter()
            .find(|name| belongs_outside(name) == outside)
            .unwrap()
    });
    ask(&house, "e", 1, waits).await.refused(409, "waiting");
    let meanwhile = ask(&house, "e", 1, served).await.expect(200);
    assert_eq!(meanwhile["decisions"][0]["holdback"], 4);
    // After the epoch and a restart the same request gets the same again, and the next begins to count anew.
    house
        .tell("e", &json!([outcome(&round["decisions"][0])]))
        .await;
    house.restart();
    assert_eq!(ask(&house, "e", 3, &outside).await.expect(200), first);
    let other = late
        .iter()
        .rev()
        .find(|name| belongs_outside(name))
        .unwrap();
    let next = ask(&house, "e", 1, other).await.expect(200);
    assert_eq!(
        (&next["epoch"], &next["decisions"][0]["holdback"]),
        (&json!(1), &json!(1))
    );
    ask(&house, "e", 2, &outside)
        .await
        .refused(409, "request_key_used");
}

#[tokio::test]
async fn a_request_that_cannot_be_placed_is_refused_with_the_remedy() {
    let house = House::new();
    house.create("e", &held_back()).await;
    let refused = house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await;
    let body = refused.refused(422, "request_key_needed");
    assert!(
        body["message"]
            .as_str()
            .unwrap()
            .contains("send a request_key"),
        "{body}"
    );
    assert_eq!(house.state("e").await["decided"], 0);
    // Paused and over, nobody is served.
    house
        .post("/v1/experiments/e/pause", &json!({}))
        .await
        .expect(200);
    ask(&house, "e", 1, &name(true))
        .await
        .refused(409, "paused");
    house
        .post("/v1/experiments/e/resume", &json!({}))
        .await
        .expect(200);
    house
        .post("/v1/experiments/e/close", &json!({}))
        .await
        .expect(200);
    ask(&house, "e", 1, &name(true))
        .await
        .refused(409, "closed");
}

#[tokio::test]
async fn outcomes_of_those_outside_are_compared_and_nothing_else() {
    let house = House::new();
    house.create("e", &held_back()).await;
    let given = ask(&house, "e", 2, &name(true)).await.expect(200);
    let before = house.state("e").await;
    let one = outcome(&given["decisions"][0]);
    for (reward, receipt) in [(0.2, "holdback"), (0.2, "repeated"), (0.3, "conflict")] {
        let mut told = one.clone();
        told["reward"] = reward.into();
        let receipts = house.tell("e", &json!([told])).await;
        assert_eq!(receipts["receipts"], json!([receipt]));
    }
    for (field, value) in [("holdback", 3), ("holdback", 0), ("epoch", 1)] {
        let mut never = one.clone();
        never[field] = value.into();
        let reply = house
            .post("/v1/experiments/e/outcomes", &json!([never]))
            .await;
        reply.refused(404, "no_such_round");
    }
    let mut both = one.clone();
    both["overtime"] = 1.into();
    house
        .post("/v1/experiments/e/outcomes", &json!([both]))
        .await
        .refused(422, "unfit");
    let mut after = house.state("e").await;
    let held_back = after["holdback"].take();
    assert_eq!(
        (&held_back["decided"], &held_back["told"]),
        (&json!(2), &json!(1))
    );
    let lift = &held_back["lifts"][0];
    assert_eq!(lift["holdback"]["count"], 1);
    assert!(
        (lift["holdback"]["mean"].as_f64().unwrap() - 0.2).abs() < 1e-12,
        "{lift}"
    );
    assert_eq!(
        (&lift["experiment"]["mean"], &lift["lift"]),
        (&json!(null), &json!(null))
    );
    let mut expected = before;
    expected["holdback"] = json!(null);
    assert_eq!(after, expected);
}

/// In one request as in as many as there are: of several epochs, in any order, with repetitions and what was never given.
#[tokio::test]
async fn many_outcomes_are_told_at_once_and_come_to_the_same() {
    let house = House::new();
    let serving = "holdback = { share = 0.25, action = 'left' }\non_wait = 'serve'";
    let spec = short_with(serving).replace("horizon = 64", "horizon = 3000");
    for id in ["singly", "together"] {
        house.create(id, &spec).await;
    }
    let (mut told, mut counted) = (Vec::new(), Vec::new());
    for user in 0..120 {
        let name = format!("user-{user}");
        let given = [
            ask(&house, "singly", 3, &name).await.expect(200),
            ask(&house, "together", 3, &name).await.expect(200),
        ];
        assert_eq!(given[0]["decisions"], given[1]["decisions"]);
        for decision in given[0]["decisions"].as_array().unwrap() {
            if decision["round"].is_u64() {
                counted.push(outcome(decision));
            } else if decision["holdback"].is_u64() {
                told.push(outcome(decision));
            } else {
                let [epoch, serial] = [&decision["epoch"], &decision["overtime"]];
                told.push(
                    json!({ "epoch": epoch, "overtime": serial, "reward": 0.5, "costs": [0] }),
                );
            }
        }
        // Not at once, so that the epoch waits and there is overtime.
        if user % 4 == 3 && !counted.is_empty() {
            for id in ["singly", "together"] {
                house.tell(id, &json!(counted)).await;
            }
            counted.clear();
        }
    }
    let (outside, overtime): (Vec<_>, Vec<_>) =
        told.iter().partition(|one| one["holdback"].is_u64());
    assert!(
        outside.len() > 40 && overtime.len() > 40,
        "{} {}",
        outside.len(),
        overtime.len()
    );
    let epochs = |told: &[&Value]| {
        told.iter()
            .map(|one| one["epoch"].as_u64())
            .collect::<BTreeSet<_>>()
    };
    assert!(epochs(&outside).len() > 5 && epochs(&overtime).len() > 5);
    let outside = outside.len();
    // A third are told beforehand, one by one; then all, some twice, one otherwise, some that nobody was given.
    let before: Vec<Value> = told.iter().step_by(3).cloned().collect();
    told.reverse();
    told.extend_from_within(10..20);
    let mut other = told[15].clone();
    other["reward"] = 0.75.into();
    told.push(other);
    for (place, serial) in [(7, 0), (30, 1_000), (50, u64::MAX)] {
        let mut never = told[place].clone();
        let kind = if never["holdback"].is_u64() {
            "holdback"
        } else {
            "overtime"
        };
        never[kind] = serial.into();
        told.insert(place, never);
    }
    let mut receipts = Vec::new();
    for one in before.iter().chain(&told) {
        let reply = house
            .post("/v1/experiments/singly/outcomes", &json!([one]))
            .await
            .json();
        let unknown = reply["code"] == "no_such_round";
        receipts.push(if unknown {
            json!("unknown")
        } else {
            reply["receipts"][0].clone()
        });
    }
    for one in &before {
        house.tell("together", &json!([one])).await;
    }
    let at_once = house.tell("together", &json!(told)).await;
    assert_eq!(at_once["receipts"], json!(receipts[before.len()..]));
    for word in ["holdback", "overtime", "repeated", "conflict", "unknown"] {
        assert!(receipts.contains(&json!(word)), "{word}: {receipts:?}");
    }
    let [singly, together] = [house.state("singly").await, house.state("together").await];
    assert_eq!(singly["holdback"]["lifts"], together["holdback"]["lifts"]);
    assert_eq!(singly["holdback"]["told"], outside);
    for id in ["singly", "together"] {
        equal(&house, id).await;
    }
}

/// Where the difference of two means lies, by the equations of docs/theory.md.
fn within(lift: &Value, expected: f64) {
    let found = lift["lift"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12, "{lift}");
    let [low, high] = ["low", "high"].map(|end| lift["interval"][end].as_f64().unwrap());
    assert!(low < found && found < high, "{lift}");
}

#[tokio::test]
async fn the_lift_stands_in_state_page_certificate_seal_and_plan_and_the_audit_is_equal() {
    let house = House::new();
    let spec = held_back().replace("horizon = 64", "horizon = 3000");
    house.create("e", &spec).await;
    play_many(&house, "e").await;
    let state = house.state("e").await;
    let held_back = &state["holdback"];
    assert_eq!(
        (
            &held_back["share"],
            &held_back["action"],
            &held_back["name"]
        ),
        (&json!(0.25), &json!(0), &json!("left"))
    );
    let average = state["means"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mean| mean["quantity"] == "quality");
    let (sum, count) = average.fold((0.0, 0.0), |(sum, count), mean| {
        let told = mean["observed"]["count"].as_f64().unwrap();
        (
            sum + told * mean["observed"]["mean"].as_f64().unwrap_or(0.0),
            count + told,
        )
    });
    within(&held_back["lifts"][0], sum / count - 0.2);
    // Half of all rounds gain 0.7, which 3,000 of them show.
    assert!(
        held_back["lifts"][0]["interval"]["low"].as_f64() > Some(0.0),
        "{held_back}"
    );
    let sentence = held_back["lifts"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("The experiment raises quality by "),
        "{sentence}"
    );
    let price = held_back["lifts"][1]["sentence"].as_str().unwrap();
    assert!(
        price.starts_with("Whether the experiment changes price is not known"),
        "{price}"
    );

    let page = house.get("/experiments/e").await.text();
    let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
    let paper = house.get("/v1/experiments/e/certificate.html").await.text();
    assert_eq!(certificate["holdback"], *held_back);
    for text in [&page, &paper] {
        let text = text.replace("&quot;", "\"");
        assert!(text.contains("The experiment raises quality by "), "{text}");
        assert!(text.contains("exploration included"), "{text}");
    }
    let seal = house.get("/v1/experiments/e/seal").await.expect(200);
    assert_eq!(
        (&seal["holdback"]["share"], &seal["holdback"]["name"]),
        (&json!(0.25), &json!("left"))
    );
    let words = "25 % of request keys are held back and always get \"left\"; what it costs them counts toward no limit.";
    assert!(
        seal["premises"]
            .to_string()
            .replace("\\\"", "\"")
            .contains(words),
        "{seal}"
    );
    let planned = house
        .post("/v1/plan", &json!({ "spec": spec }))
        .await
        .expect(200);
    assert!(
        planned["sentences"]
            .to_string()
            .replace("\\\"", "\"")
            .contains(words),
        "{planned}"
    );

    let log = house.get("/v1/experiments/e/log/download").await.text();
    let mut log = Log::text(Box::new(Cursor::new(log)), None);
    let Verdict::Equal(audited) = audit(&mut log, certificate["head"].as_str()).unwrap() else {
        panic!("the audit finds a difference");
    };
    assert_eq!(Some(audited.holdback), held_back["decided"].as_u64());
    assert!(audited.recomputed);
    let metrics = house.get("/metrics").await.text();
    let line = format!(
        "debora_decisions_total{{kind=\"holdback\"}} {}",
        audited.holdback
    );
    assert!(
        metrics.lines().any(|found| found == line),
        "{line} is not in\n{metrics}"
    );
}

/// Requests of ten rounds, until the horizon.
async fn play_many(house: &House, id: &str) {
    for user in 0..10_000 {
        let reply = ask(house, id, 10, &format!("user-{user}")).await;
        if reply.status == 409 {
            reply.refused(409, "done");
            return;
        }
        let decided = reply.expect(200);
        let told: Vec<Value> = decided["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(outcome)
            .collect();
        house.tell(id, &Value::from(told)).await;
    }
    panic!("no end");
}
