//! Waiting, overtime, imputation, late outcomes, and the check of what goes missing.

use serde_json::{Value, json};

use crate::{House, SHORT, outcomes, short_with};

/// Decides an epoch that is longer than a round, and leaves it waiting.
async fn waiting(house: &House, id: &str) -> Value {
    loop {
        let decided = house.decide(id, 64).await;
        if decided["decisions"].as_array().unwrap().len() >= 4 {
            return decided;
        }
        house.tell(id, &outcomes(&decided, 1.0, 0.01)).await;
    }
}

#[tokio::test]
async fn a_held_epoch_says_how_many_are_outstanding_and_when_to_come_back() {
    let house = House::new();
    house.create("e", SHORT).await;
    let decided = waiting(&house, "e").await;
    let many = decided["decisions"].as_array().unwrap().len() as u64;
    let reply = house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await;
    let body = reply.refused(409, "waiting");
    assert_eq!(
        (&body["outstanding"], &body["retry_after"]),
        (&json!(many), &json!(1))
    );
    assert_eq!(reply.headers["retry-after"], "1");
    let state = house.state("e").await;
    assert_eq!(
        (&state["waiting"], &state["outstanding"]),
        (&json!(true), &json!(many))
    );
    house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    assert_eq!(house.state("e").await["waiting"], false);
    house.decide("e", 1).await;
}

#[tokio::test]
async fn overtime_decisions_have_serials_and_count_for_nothing() {
    let house = House::new();
    house.create("e", &short_with("on_wait = 'serve'")).await;
    let decided = waiting(&house, "e").await;
    let overtime = house.decide("e", 2).await;
    assert_eq!(
        (&overtime["overtime"], &overtime["epoch"]),
        (&json!(true), &decided["epoch"])
    );
    let first = &overtime["decisions"][0];
    assert_eq!(
        (&first["round"], &first["overtime"]),
        (&json!(null), &json!(1))
    );
    assert_eq!(overtime["decisions"][1]["overtime"], 2);
    let before = house.state("e").await;
    assert_eq!(before["overtime"], 2);
    let outcome = |reward: f64| json!([{ "epoch": first["epoch"], "overtime": 1, "reward": reward, "costs": { "price": 0.01 } }]);
    assert_eq!(
        house.tell("e", &outcome(0.5)).await["receipts"],
        json!(["overtime"])
    );
    assert_eq!(
        house.tell("e", &outcome(0.5)).await["receipts"],
        json!(["repeated"])
    );
    assert_eq!(
        house.tell("e", &outcome(0.7)).await["receipts"],
        json!(["conflict"])
    );
    let never = json!([{ "epoch": first["epoch"], "overtime": 3, "reward": 0.5, "costs": [0.01] }]);
    house
        .post("/v1/experiments/e/outcomes", &never)
        .await
        .refused(404, "no_such_round");
    // It was observed, and that is all.
    let mut after = house.state("e").await;
    assert_eq!(after["limits"][0]["realised_overtime"].take(), 0.01);
    assert_eq!(after, before);
}

#[tokio::test]
async fn what_does_not_come_in_time_is_imputed_and_then_late() {
    let mut house = House::new();
    house.create("e", &short_with("outcome_wait = '10s'")).await;
    let decided = waiting(&house, "e").await;
    house.wait(9_999);
    assert_eq!(house.service.tick().await.unwrap().imputed, 0);
    house.restart();
    house.wait(1);
    let many = decided["decisions"].as_array().unwrap().len() as u64;
    assert_eq!(house.service.tick().await.unwrap().imputed, many);
    let state = house.state("e").await;
    assert_eq!(
        (&state["imputed"], &state["outstanding"]),
        (&json!(many), &json!(0))
    );
    let told = outcomes(&decided, 1.0, 0.01);
    let late = house.tell("e", &told).await;
    assert_eq!(
        (&late["counts"]["late"], &late["counts"]["recorded"]),
        (&json!(many), &json!(0))
    );
    assert_eq!(house.tell("e", &told).await["counts"]["repeated"], many);
    let after = house.state("e").await;
    assert_eq!(
        (&after["late"], &after["digest"]),
        (&json!(many), &state["digest"])
    );
}

#[tokio::test]
async fn an_experiment_that_nobody_tells_comes_to_its_end_all_the_same() {
    let house = House::new();
    house.create("e", &short_with("outcome_wait = '10s'")).await;
    while house.state("e").await["status"] == "running" {
        house.decide("e", 64).await;
        house.wait(10_000);
        house.service.tick().await.unwrap();
    }
    let state = house.state("e").await;
    assert_eq!(
        (&state["status"], &state["imputed"], &state["decided"]),
        (&json!("done"), &json!(64), &json!(64))
    );
    assert_eq!(state["sample_ratio"]["mismatch"], false);
}

/// A long epoch: both actions are explored for thousands of rounds, in random order.
const LONG: &str = "policy = 'soft'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n[[cost]]\n\
    name = 'price'\nthreshold = 0.9\n[service]\noutcome_wait = '10s'\n";

/// Plays until this many rounds are decided, never telling the outcomes that `missing` names (by action and place).
async fn play(house: &House, rounds: u64, missing: impl Fn(u64, usize) -> bool) {
    while house.state("e").await["decided"].as_u64().unwrap() < rounds {
        let decided = house.decide("e", 500).await;
        let told = decided["decisions"].as_array().unwrap().iter().enumerate();
        let told =
            told.filter(|(place, decision)| !missing(decision["action"].as_u64().unwrap(), *place));
        let told = told.map(
            |(_, decision)| json!({ "round": decision["round"], "reward": 1, "costs": [0.5] }),
        );
        house.tell("e", &told.collect()).await;
        house.wait(10_000);
        house.service.tick().await.unwrap();
    }
}

#[tokio::test]
async fn outcomes_missing_after_one_action_raise_the_alarm() {
    let house = House::new();
    house.create("e", LONG).await;
    play(&house, 4_000, |action, place| action == 1 && place % 5 == 0).await;
    let check = house.state("e").await["sample_ratio"].clone();
    assert!(
        check["mismatch"] == true && check["p_value"].as_f64().unwrap() < 1e-3,
        "{check}"
    );
    assert!(
        check["sentence"]
            .as_str()
            .unwrap()
            .starts_with("Whether an outcome goes missing depends on the action: after \"right\" "),
        "{check}"
    );
}

/// Neither outcomes that go missing evenly, nor those still on their way, are an alarm.
#[tokio::test]
async fn outcomes_missing_evenly_or_on_their_way_do_not() {
    let house = House::new();
    house.create("e", LONG).await;
    play(&house, 4_000, |_, place| place % 5 == 0).await;
    house.decide("e", 500).await;
    let state = house.state("e").await;
    assert!(state["outstanding"].as_u64().unwrap() > 100, "{state}");
    let check = &state["sample_ratio"];
    assert!(
        check["mismatch"] == false && check["p_value"].as_f64().unwrap() > 0.01,
        "{check}"
    );
}
