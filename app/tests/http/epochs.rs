//! Epochs: the list, the page of each, and that what is shown is what was played.

use std::f64::consts::PI;

use axum::body::Body;
use axum::http::Request;
use debora::spec::Spec;
use debora::{Key, Plan, VALUES_VERSION};
use debora_cli::store::{EpochRow, ExperimentRow, Progress, Purpose, Role, Status};
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::{House, KEY, Reply, SHORT, outcomes};

/// A spec with early estimates: large budgets, counts that double.
fn spec(policy: &str, costs: &[(&str, f64)], more: &str) -> String {
    let head = format!(
        "name = 'routing'\npolicy = '{policy}'\nhorizon = 60_000\nrho = 0.9\ndelta = 0.4\ngrowth = 2\n\
         actions = ['small', 'medium', 'large']\n{more}\n[reward]\nname = 'quality'\n"
    );
    let cost = |(name, threshold): &(&str, f64)| {
        format!("[[cost]]\nname = '{name}'\nrange = [0.0, 2.0]\nthreshold = {threshold}\n")
    };
    head + &costs.iter().map(cost).collect::<String>()
}

const SAFE: &str = "[safe]\nstrategy = { small = 1.0 }\ncost = { price = 0.4, delay = 0.4 }";

/// What each action earns and costs: the same every time, so that few rounds say much.
const WORLD: [(f64, [f64; 2]); 3] = [(0.2, [0.1, 0.2]), (0.5, [0.8, 0.4]), (0.9, [1.9, 1.8])];

/// Plays until so many rounds are told; the strategy of each epoch as decisions told it.
async fn play(house: &House, id: &str, spec: &str, rounds: usize, dear: f64) -> Vec<Vec<f64>> {
    house.create(id, spec).await;
    let costs: Vec<&str> = ["price", "delay"]
        .into_iter()
        .filter(|name| spec.contains(&format!("name = '{name}'")))
        .collect();
    let (mut told, mut played) = (0, Vec::new());
    while told < rounds {
        let answer = house.decide(id, 10_000).await;
        let epoch = answer["epoch"].as_u64().unwrap() as usize;
        played.resize(epoch + 1, vec![0.0; 3]);
        let mut outcomes = Vec::new();
        for decision in answer["decisions"].as_array().unwrap() {
            let action = decision["action"].as_u64().unwrap() as usize;
            played[epoch][action] = decision["probability"].as_f64().unwrap();
            let (reward, values) = WORLD[action];
            let values = costs
                .iter()
                .zip(values)
                .map(|(name, value)| (*name, (value + dear).min(2.0)));
            let costs: std::collections::BTreeMap<&str, f64> = values.collect();
            outcomes.push(json!({ "round": decision["round"], "reward": reward, "costs": costs }));
        }
        told += outcomes.len();
        house.tell(id, &json!(outcomes)).await;
    }
    played
}

/// Plays an experiment without costs to its end.
async fn live(house: &House, id: &str, reward: impl Fn(f64) -> f64) {
    while house.state(id).await["status"] == "running" {
        let answer = house.decide(id, 10_000).await;
        let decisions = answer["decisions"].as_array().unwrap().iter();
        let told = decisions.map(|decision| {
            let action = decision["action"].as_f64().unwrap();
            json!({ "round": decision["round"], "reward": reward(action) })
        });
        house.tell(id, &told.collect()).await;
    }
}

async fn detail(house: &House, id: &str, epoch: usize) -> Value {
    house
        .get(&format!("/v1/experiments/{id}/epochs/{epoch}"))
        .await
        .expect(200)
}

async fn epochs(house: &House, id: &str) -> Vec<Value> {
    let list = house
        .get(&format!("/v1/experiments/{id}/epochs"))
        .await
        .expect(200);
    list["epochs"].as_array().unwrap().clone()
}

/// The records as the log has them, for a caller who may read.
async fn records(house: &House, id: &str) -> Vec<Value> {
    let log = house
        .get(&format!("/v1/experiments/{id}/log/download"))
        .await
        .text();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["type"] == "epoch")
        .map(|line| line["record"].clone())
        .collect()
}

fn numbers(values: &Value, field: &str) -> Vec<f64> {
    values
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value[field].as_f64().unwrap())
        .collect()
}

fn sentences(detail: &Value) -> String {
    let sentences = detail["why"].as_array().unwrap();
    sentences
        .iter()
        .map(|sentence| sentence.as_str().unwrap())
        .collect::<Vec<_>>()
        .join(" ")
}

#[track_caller]
fn near(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-9, "{one} {other}");
}

/// The latest estimate of a quantity, action by action.
fn in_force(detail: &Value, quantity: &str) -> Vec<Value> {
    let all = detail["estimates"].as_array().unwrap().iter();
    all.filter(|estimate| estimate["quantity"] == quantity)
        .cloned()
        .collect()
}

/// What is found again is what decisions were told and what the log has; estimates are the log's, in the user's units.
async fn shown_is_played(house: &House, id: &str, played: &[Vec<f64>]) -> Vec<Value> {
    let recorded = records(house, id).await;
    let mut details = Vec::new();
    for (epoch, record) in recorded.iter().enumerate() {
        let detail = detail(house, id, epoch).await;
        assert_eq!(detail["recomputed"], true);
        let after = numbers(&detail["actions"], "after");
        assert_eq!(json!(after), record["strategy"]);
        // An action that is played seldom may not have been drawn yet.
        for (told, shown) in played
            .get(epoch)
            .iter()
            .flat_map(|told| told.iter().zip(&after))
        {
            assert!(*told == 0.0 || told == shown, "{told} {shown}");
        }
        assert_eq!(
            detail["entry"],
            Value::Null,
            "the list's fields stand beside the others"
        );
        let made = detail["estimates"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|made| made["made_in"] == epoch);
        for (shown, logged) in made.clone().zip(record["estimates"].as_array().unwrap()) {
            let range = if shown["quantity"] == "quality" {
                1.0
            } else {
                2.0
            };
            for (pointer, name, scale) in [
                ("/mean", "mean", range),
                ("/estimate", "estimate", range),
                ("/interval/low", "low", range),
                ("/interval/high", "high", range),
                ("/offset", "offset", 1.0),
            ] {
                let shown = shown.pointer(pointer).unwrap().as_f64().unwrap();
                let logged = logged[name].as_f64().unwrap();
                // The published profile's ends may lie outside the range, where no mean is.
                near(shown, logged.clamp(0.0, 1.0) * scale);
            }
            assert_eq!(
                (&shown["count"], &shown["level"], &shown["index"]),
                (&logged["count"], &logged["level"], &logged["index"])
            );
        }
        assert_eq!(json!(made.count()), detail["estimates_made"]);
        let page = house
            .get(&format!("/experiments/{id}/epochs/{epoch}"))
            .await;
        assert_eq!(page.status, 200, "{}", page.text());
        details.push(detail);
    }
    details
}

#[tokio::test]
async fn without_limits_the_largest_index_is_played() {
    let house = House::new();
    let published = spec("free", &[], "profile = 'paper'").replace("growth = 2\n", "");
    house
        .create("close", &published.replace("60_000", "6_000"))
        .await;
    // Section 4 of the specification: M = 2 K L = 2 * 3 * 13, and the width zeta.
    let (rho, delta) = (0.9 / 78.0, 0.4 / 78.0);
    let width = |count: f64| (2.0 * f64::ln(2.0 / delta) / count).sqrt() / (rho - 2.0 * delta);
    live(&house, "close", |action| 0.5 + 0.02 * action).await;
    let details = shown_is_played(&house, "close", &[]).await;
    let estimated: Vec<&Value> = details
        .iter()
        .filter(|detail| detail["kind"] == "estimate")
        .collect();
    assert!(!estimated.is_empty(), "{:?}", epochs(&house, "close").await);
    for detail in estimated {
        let (index, after) = (
            numbers(&detail["actions"], "index"),
            numbers(&detail["actions"], "after"),
        );
        let best = after.iter().position(|&share| share == 1.0).unwrap();
        assert!(
            index.iter().all(|&other| other <= index[best]),
            "{index:?} {after:?}"
        );
        for estimate in in_force(detail, "quality") {
            let number = |field: &str| estimate[field].as_f64().unwrap();
            let expected = number("estimate") + width(number("count"));
            near(
                expected,
                index[estimate["action"].as_u64().unwrap() as usize],
            );
        }
        let name = ["small", "medium", "large"][best];
        assert!(
            sentences(detail).contains(&format!("{name} is played: by its estimate and width")),
            "{}",
            sentences(detail)
        );
    }

    house
        .create("tight", &spec("free", &[], "").replace("60_000", "6_000"))
        .await;
    live(&house, "tight", |_| 0.5).await;
    let details = shown_is_played(&house, "tight", &[]).await;
    let last = details.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["estimates"]),
        (&json!("pick"), &json!([]))
    );
    let after = numbers(&last["actions"], "after");
    let picked = after.iter().position(|&share| share == 1.0).unwrap();
    let told = format!(
        "{} was picked at the end of the trial",
        ["small", "medium", "large"][picked]
    );
    assert!(sentences(last).contains(&told), "{}", sentences(last));

    let spec = "policy = 'free'\nhorizon = 60_000\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b']\n";
    house.create("clear", spec).await;
    live(&house, "clear", |action| action).await;
    let details = shown_is_played(&house, "clear", &[]).await;
    let last = details.last().unwrap();
    assert_eq!(last["kind"], "commit");
    let (lead, threshold) = (
        last["test"]["lead"].as_f64().unwrap(),
        last["test"]["threshold"].as_f64().unwrap(),
    );
    assert!(lead > threshold, "{last}");
    assert!(
        sentences(last)
            .starts_with("b is played to the horizon, whatever its outcomes. b was 1 ahead"),
        "{}",
        sentences(last)
    );
    let page = house
        .get(&format!("/experiments/clear/epochs/{}", details.len() - 1))
        .await
        .text();
    assert!(
        page.contains("The look") && page.contains("so the leader is played to the horizon"),
        "{page}"
    );
    let list = house.get("/experiments/clear/epochs").await.text();
    assert!(
        list.contains("passed") && list.contains("badge committed"),
        "{list}"
    );
}

/// The line of a soft experiment's means, from sections 3 and 5 of the specification.
struct Grid {
    offset_c: f64,
    rho: f64,
    delta: f64,
}

impl Grid {
    fn new(costs: &[(&str, f64)]) -> Self {
        let plan = Plan::of(Spec::parse(&spec("soft", costs, ""), "e").unwrap().problem);
        // E J: three actions' reward and costs, at each level.
        let estimates = (3 * (1 + costs.len()) * plan.levels.len()) as f64;
        let (rho, delta) = (0.9 / estimates, 0.4 / estimates);
        Self {
            offset_c: f64::max(1.0, f64::ln(2.0 / delta) / 2.0),
            rho,
            delta,
        }
    }

    fn cell(&self, count: f64) -> f64 {
        1.0 / (PI * count).sqrt() / self.rho
    }

    /// Y: where a mean lies.
    fn on_line(&self, count: f64, mean: f64) -> f64 {
        let ones = (count * mean + self.offset_c).sqrt();
        ones.atan2((count - count * mean + self.offset_c).sqrt())
    }

    /// The cell of a mean.
    fn index(&self, count: f64, offset: f64, mean: f64) -> f64 {
        (self.on_line(count, mean) / self.cell(count) - offset).floor()
    }

    /// B so many widths above the middle of an estimate's cell.
    fn place(&self, estimate: &Value, widths: f64) -> f64 {
        let number = |field: &str| estimate[field].as_f64().unwrap();
        let (count, cell) = (number("count"), self.cell(number("count")));
        let radius = 1.03 * (f64::ln(2.0 / self.delta) / (2.0 * count)).sqrt();
        let middle = (number("offset") + number("index") + 0.5) * cell;
        let place = middle + widths * (radius + cell / 2.0);
        let [least, most] = [0.0, 1.0].map(|mean| self.on_line(count, mean));
        let sine = place.clamp(least, most).sin();
        let ones = (count + 2.0 * self.offset_c) * sine * sine - self.offset_c;
        (ones / count).clamp(0.0, 1.0)
    }
}

/// The limits of a soft experiment, by plain arithmetic on the estimates that the page shows.
#[tokio::test]
async fn soft_limits_bind_where_what_is_played_costs_the_threshold_with_caution() {
    let house = House::new();
    for (id, costs) in [
        ("one", &[("price", 0.6)][..]),
        ("two", &[("price", 0.6), ("delay", 1.2)]),
    ] {
        let played = play(&house, id, &spec("soft", costs, ""), 14_000, 0.0).await;
        let details = shown_is_played(&house, id, &played).await;
        let grid = Grid::new(costs);
        let mut bound = 0;
        for detail in details.iter().filter(|detail| detail["kind"] == "estimate") {
            let after = numbers(&detail["actions"], "after");
            for (limit, (name, threshold)) in detail["limits"].as_array().unwrap().iter().zip(costs)
            {
                let estimates = in_force(detail, name);
                let cost = |widths: f64| -> f64 {
                    let places = estimates
                        .iter()
                        .map(|estimate| grid.place(estimate, widths));
                    places
                        .zip(&after)
                        .map(|(cost, share)| 2.0 * cost * share)
                        .sum()
                };
                // Caution is 1/2 where the spec does not say.
                let (least, moderate) = (cost(-1.0), cost(0.5));
                near(limit["least"].as_f64().unwrap(), least);
                let bounded = match detail["rule"].as_str() {
                    Some("moderate") => {
                        near(limit["moderate"].as_f64().unwrap(), moderate);
                        moderate
                    }
                    rule => {
                        assert_eq!(
                            (rule, &limit["moderate"]),
                            (Some("optimistic"), &Value::Null)
                        );
                        least
                    }
                };
                near(limit["slack"].as_f64().unwrap(), threshold - bounded);
                assert_eq!(
                    limit["tight"],
                    (threshold - bounded).abs() < 1e-8,
                    "{limit}"
                );
                bound += u64::from(limit["tight"] == true);
                let told = format!("{name} (threshold {threshold})");
                assert_eq!(
                    sentences(detail).contains(&told),
                    limit["tight"] == true,
                    "{}",
                    sentences(detail)
                );
            }
            let reward: f64 = in_force(detail, "quality")
                .iter()
                .zip(&after)
                .map(|(estimate, share)| share * estimate["estimate"].as_f64().unwrap())
                .sum();
            near(detail["expected"][0]["value"].as_f64().unwrap(), reward);
        }
        assert!(bound > 0, "no limit binds in {id}");
    }
}

#[tokio::test]
async fn limits_that_cannot_be_kept_are_told_with_their_excess() {
    let house = House::new();
    let played = play(
        &house,
        "soft",
        &spec("soft", &[("price", 0.2)], ""),
        14_000,
        1.6,
    )
    .await;
    let details = shown_is_played(&house, "soft", &played).await;
    let last = details.last().unwrap();
    assert_eq!(last["kind"], "infeasible");
    let limit = &last["limits"][0];
    let excess = limit["least"].as_f64().unwrap() - 0.2;
    assert!(excess > 0.0 && limit["exceeded"] == true, "{limit}");
    let told = format!(
        "price cannot be kept: where the largest excess is least it costs at least {}",
        debora::measure::words::amount(excess + 0.2)
    );
    assert!(sentences(last).contains(&told), "{}", sentences(last));
}

#[tokio::test]
async fn under_hard_limits_what_is_played_costs_the_threshold_at_most() {
    let house = House::new();
    let spec = spec("hard", &[("price", 1.0), ("delay", 1.0)], SAFE);
    let played = play(&house, "hard", &spec, 14_000, 0.0).await;
    let details = shown_is_played(&house, "hard", &played).await;
    let mut rules = Vec::new();
    for detail in &details {
        rules.extend(detail["rule"].as_str());
        for limit in detail["limits"].as_array().unwrap() {
            let most = limit["most"].as_f64().unwrap();
            assert!(most <= 1.0 + 1e-9, "{limit}");
            assert_eq!(limit["least"].is_null(), detail["kind"] == "explore");
        }
        let told = sentences(detail);
        let sigma = detail["sigma"].as_f64().unwrap();
        assert_eq!(
            told.contains("afe strategy"),
            sigma > 0.0 || detail["rule"] == "plan" && detail["kind"] == "estimate",
            "{told}"
        );
    }
    assert!(
        details.len() > 1 && rules.contains(&"plan") && rules.contains(&"mix"),
        "{rules:?}"
    );
}

/// The cell holds the mean, and a mean that differs by less than what is said stays in it.
#[tokio::test]
async fn the_distance_to_an_edge_is_the_least_that_changes_the_estimate() {
    let house = House::new();
    play(
        &house,
        "e",
        &spec("soft", &[("price", 0.6)], ""),
        14_000,
        0.0,
    )
    .await;
    let grid = Grid::new(&[("price", 0.6)]);
    let mut seen = 0;
    for entry in epochs(&house, "e").await {
        let detail = detail(&house, "e", entry["epoch"].as_u64().unwrap() as usize).await;
        for estimate in detail["estimates"].as_array().unwrap() {
            let number = |field: &str| estimate[field].as_f64().unwrap();
            let span = if estimate["quantity"] == "quality" {
                1.0
            } else {
                2.0
            };
            let [mean, edge] = [number("mean"), number("to_edge")].map(|value| value / span);
            let round = |mean: f64| grid.index(number("count"), number("offset"), mean);
            let cell = round(mean);
            assert_eq!(cell, number("index"));
            for sign in [-1.0, 1.0] {
                // No mean is beyond the range, whatever cell that would be.
                let other = (mean + sign * edge * 0.999).clamp(0.0, 1.0);
                assert_eq!(round(other), cell, "{estimate}");
            }
            let beyond = [-1.0, 1.0].map(|sign| mean + sign * (edge + 1e-9));
            assert!(
                beyond
                    .iter()
                    .any(|mean| round(*mean) != cell && (0.0..=1.0).contains(mean)),
                "{estimate}"
            );
            let place = |mean: f64| grid.on_line(number("count"), mean);
            let apart = [-edge, edge].map(|edge| (place(mean + edge) - place(mean)).abs());
            let cells = apart.map(|apart| apart / grid.cell(number("count")));
            let told = number("to_edge_cells");
            assert!(
                cells.iter().any(|cells| (cells - told).abs() < 1e-9),
                "{estimate}"
            );
            seen += 1;
        }
    }
    assert!(seen > 6, "{seen}");
}

/// Role read sees the log without the key; what is here is in it, and follows from it.
#[tokio::test]
async fn epochs_tell_no_more_than_the_log() {
    let mut house = House::new();
    house.create("e", SHORT).await;
    for _ in 0..4 {
        let decided = house.decide("e", 64).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    set_key(&house, "ops", Role::Admin, None);
    set_key(&house, "reader", Role::Read, None);
    // Keys are read again at a start at the latest.
    house.restart();
    let read = async |path: &str| {
        let request =
            Request::get(path).header("authorization", format!("Bearer {}", token("reader")));
        house.send(request.body(Body::empty()).unwrap()).await
    };
    let log = read("/v1/experiments/e/log/download").await.text();
    for path in [
        "/v1/experiments/e/epochs",
        "/v1/experiments/e/epochs/4",
        "/experiments/e/epochs/4",
        "/v1/experiments/e/epochs.csv",
    ] {
        let reply = read(path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text().contains(KEY) && !log.contains(KEY), "{path}");
    }
    let detail = read("/v1/experiments/e/epochs/4").await.json();
    let estimates = detail["estimates"].as_array().unwrap();
    assert!(!estimates.is_empty());
    for estimate in estimates {
        let offset = format!("\"offset\":{}", estimate["offset"]);
        assert!(log.contains(&offset), "{offset} is not in the log");
    }
    // Without a key there is nothing to see, and a page sends people to the login.
    assert_eq!(house.get("/v1/experiments/e/epochs").await.status, 401);
    assert_eq!(house.get("/experiments/e/epochs/0").await.status, 303);
}

#[tokio::test]
async fn the_list_has_every_epoch_and_what_changed() {
    let house = House::new();
    let spec = SHORT.replace("left", "=left, \\\"1\\\" <b>");
    house.create("e", &spec).await;
    let none = house.get("/experiments/e/epochs/0").await.text();
    assert!(
        none.contains("none yet") && none.contains("The epoch is open") && none.contains("hx-get"),
        "{none}"
    );
    for _ in 0..5 {
        house.wait(61_000);
        let decided = house.decide("e", 64).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    let entries = epochs(&house, "e").await;
    let recorded = records(&house, "e").await;
    assert_eq!((entries.len(), recorded.len()), (6, 6));
    let mut before: Option<Value> = None;
    for (entry, record) in entries.iter().zip(recorded) {
        assert_eq!(
            (&entry["epoch"], &entry["first_round"]),
            (&record["epoch"], &record["first_round"])
        );
        let changes = entry["changes"].as_array().unwrap();
        let differs = before
            .as_ref()
            .is_some_and(|before| *before != record["strategy"]);
        assert_eq!(changes.is_empty(), !differs, "{entry}");
        for change in changes {
            let action = change["action"].as_u64().unwrap() as usize;
            assert_eq!(
                (&change["before"], &change["after"]),
                (
                    &before.as_ref().unwrap()[action],
                    &record["strategy"][action]
                )
            );
        }
        before = Some(record["strategy"].clone());
    }
    let part = house
        .get("/v1/experiments/e/epochs?from=2&limit=3")
        .await
        .expect(200);
    assert_eq!(
        (&part["epochs"], &part["next"]),
        (&json!(entries[2..5]), &json!(5))
    );
    assert_eq!(
        house
            .get("/v1/experiments/e/epochs?from=99")
            .await
            .expect(200)["epochs"],
        json!([])
    );
    house
        .get("/v1/experiments/e/epochs?limit=0")
        .await
        .refused(422, "unfit");

    let page = house.get("/experiments/e/epochs").await;
    let text = page.text();
    for word in [
        "6 epochs so far",
        "1 min 1 s",
        "=left, &quot;1&quot; &lt;b&gt;",
        "hx-get",
        "epochs.csv",
        "/experiments/e/epochs/5",
    ] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let hash = entries[0]["hash"].as_str().unwrap();
    assert!(
        text.contains(&format!("title=\"{hash}\">{hash}<")),
        "{text}"
    );
    assert!(
        text.find("Epoch 5").unwrap() < text.find("Epoch 4").unwrap(),
        "the newest first"
    );
    let earlier = house.get("/experiments/e/epochs?before=2").await.text();
    assert!(
        earlier.contains("Epoch 1") && !earlier.contains("Epoch 2<") && !earlier.contains("hx-get"),
        "{earlier}"
    );

    let csv = house.get("/v1/experiments/e/epochs.csv").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let lines: Vec<String> = csv.text().lines().map(str::to_owned).collect();
    assert!(
        lines[0].ends_with("hash,\"probability of =left, \"\"1\"\" <b>\",probability of right"),
        "{}",
        lines[0]
    );
    assert!(
        lines.len() == 7
            && lines[1].starts_with("0,explore,,1,1,2023-11-14T")
            && lines[1].ends_with(&format!("{hash},1,0")),
        "{}",
        lines[1]
    );
}

/// The link to the log leads to the lines of the epoch, and the hashes are the ones that stand there.
#[tokio::test]
async fn an_epoch_leads_to_its_lines_in_the_log() {
    let house = House::new();
    house.create("e", SHORT).await;
    for _ in 0..4 {
        let decided = house.decide("e", 64).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    house
        .post_text("/v1/experiments/e/close", "")
        .await
        .expect(200);
    let count = epochs(&house, "e").await.len();
    for epoch in 0..count {
        let page = house
            .get(&format!("/experiments/e/epochs/{epoch}"))
            .await
            .text();
        let link = page
            .split("href=\"")
            .find(|part| part.contains("/log"))
            .unwrap();
        let link = link.split('"').next().unwrap().replace("&amp;", "&");
        let text = house.get(&link).await.text();
        let mut lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let first = lines.find(|line| line["type"] == "epoch").unwrap();
        assert_eq!(first["record"]["epoch"], epoch, "{link}");
        let closed = lines.find(|line| line["type"] == "closed").unwrap();
        let detail = detail(&house, "e", epoch).await;
        assert_eq!(detail["hash"], closed["hash"]);
        for field in [
            "previous",
            "rounds_hash",
            "leases_hash",
            "journal_end",
            "journal",
        ] {
            assert_eq!(detail["chain"][field], closed[field], "{field}");
        }
        assert_eq!(
            detail["chain"]["early"],
            closed.get("early").cloned().unwrap_or(json!(false))
        );
        assert!(!page.contains("hx-get"), "what is closed does not change");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_answer_and_on_a_page() {
    let house = House::new();
    house.create("e", SHORT).await;
    for epoch in ["1", "-1", "x", "99999999999999999999", "1.5"] {
        house
            .get(&format!("/v1/experiments/e/epochs/{epoch}"))
            .await
            .refused(404, "no_such_epoch");
        let page = house.get(&format!("/experiments/e/epochs/{epoch}")).await;
        assert!(
            page.status == 404 && page.text().contains("has no epoch"),
            "{}",
            page.text()
        );
    }
    house
        .get("/v1/experiments/none/epochs/0")
        .await
        .refused(404, "no_experiment");
    for path in ["/experiments/none/epochs", "/experiments/none/epochs/0"] {
        let page = house.get(path).await;
        assert!(
            page.status == 404 && page.text().contains("<html"),
            "{}",
            page.text()
        );
    }
    // Not a number, and not one of the reward and the costs.
    for quantity in ["x", "2"] {
        let path = format!("/experiments/e/epochs/0?quantity={quantity}");
        let page = house.get(&path).await;
        assert!(
            page.status == 422 && page.text().contains("<html"),
            "{}",
            page.text()
        );
    }
}

/// Puts an experiment of two epochs into the store, whose second one has this record.
fn put(house: &House, spec: String, values_version: u32, record: &Value) {
    let experiment = ExperimentRow {
        id: "old".into(),
        spec,
        key: Key::from_hex(KEY).unwrap(),
        salt: [7; 16],
        created_at: 0,
        values_version,
    };
    let actions = record["strategy"].as_array().unwrap().len();
    let counts: Vec<u64> = serde_json::from_value(record["counts"].clone()).unwrap();
    let progress = Progress {
        status: Status::Running,
        epoch: 1,
        next_round: counts.iter().sum::<u64>() + 1,
        decided: counts.clone(),
        outcomes: counts,
        imputed: vec![0; actions],
        imputed_before: vec![0; actions],
        late: 0,
        overtime: 0,
        next_serial: 1,
        holdback: 0,
        next_holdback: 1,
        impute_from: 1,
        infeasible: 0,
        head: "ab".repeat(32),
        digest: "cd".repeat(32),
        next_position: 0,
        journal: String::new(),
    };
    let uniform = vec![1.0 / actions as f64; actions];
    let first = json!({ "epoch": 0, "first_round": 1, "rounds": progress.next_round - 1, "kind": "explore", "candidate": uniform,
        "sigma": 0.0, "strategy": uniform, "counts": vec![0; actions], "estimates": [] });
    let row = |epoch, record: &Value| EpochRow {
        epoch,
        record: record.to_string(),
        snapshot: None,
        opened_at: 0,
        closed_at: None,
        rounds_hash: None,
        hash: None,
        leases_hash: None,
        journal_end: None,
        journal: None,
    };
    let closed = EpochRow {
        closed_at: Some(5_000),
        rounds_hash: Some("12".repeat(32)),
        leases_hash: Some("34".repeat(32)),
        journal_end: Some(0),
        journal: Some(String::new()),
        hash: Some("ab".repeat(32)),
        ..row(0, &first)
    };
    let mut store = house.location().open(Purpose::Write).unwrap();
    store.begin().unwrap();
    store
        .create(&experiment, &progress, &row(0, &first))
        .unwrap();
    store
        .close_epoch("old", &closed, Some(&row(1, record)))
        .unwrap();
    store.commit().unwrap();
}

/// A record whose estimates were all made at its start, of every action and quantity.
fn record(actions: u32, quantities: u32, count: u64) -> Value {
    let mut estimates = Vec::new();
    for action in 0..actions {
        for quantity in 0..quantities {
            let (mean, cell, offset) = (
                f64::from((action * 7 + quantity * 3) % 97) / 100.0,
                0.05,
                0.25,
            );
            let (index, estimate) = debora::mean::round_to_cell(mean, cell, offset);
            estimates.push(json!({ "epoch": 1, "action": action, "quantity": quantity, "count": count, "mean": mean,
                "offset": offset, "cell": cell, "index": index, "estimate": estimate, "width": 0.06,
                "low": estimate - 0.06, "high": estimate + 0.06 }));
        }
    }
    let mut strategy = vec![0.0; actions as usize];
    strategy[1] = 1.0;
    json!({ "epoch": 1, "first_round": count * u64::from(actions) + 1, "rounds": 0, "kind": "estimate", "candidate": strategy,
        "sigma": 0.0, "strategy": strategy, "counts": vec![count; actions as usize], "estimates": estimates })
}

#[tokio::test]
async fn of_other_values_what_is_recorded_is_shown_and_nothing_is_found_again() {
    let house = House::new();
    put(&house, SHORT.into(), 1, &record(2, 2, 8));
    let detail = detail(&house, "old", 1).await;
    assert_eq!(
        (&detail["recomputed"], &detail["limits"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(
        (
            &detail["actions"][1]["after"],
            detail["estimates"].as_array().unwrap().len()
        ),
        (&json!(1.0), 4)
    );
    assert!(
        sentences(&detail).contains("decided with values version 1, and this program has 3"),
        "{detail}"
    );
    let page = house.get("/experiments/old/epochs/1").await.text();
    assert!(
        page.contains("does not find the strategy again")
            && page.contains("Estimates in force")
            && !page.contains("Limits"),
        "{page}"
    );
    let closed = house.get("/experiments/old/epochs/0").await.text();
    assert!(closed.contains(&"34".repeat(32)), "{closed}");
    assert!(
        house
            .get("/experiments/old/epochs")
            .await
            .text()
            .contains("2 epochs so far")
    );
}

/// 200 actions and 20 costs: folded, the actions that are played first, and all of a quantity on demand.
#[tokio::test]
async fn many_actions_and_costs_make_a_page_that_is_still_small() {
    let house = House::new();
    let names: Vec<String> = (0..200)
        .map(|action| format!("\"<action> number {action} of many\""))
        .collect();
    let costs =
        (0..20).map(|cost| format!("[[cost]]\nname = \"cost {cost} &\"\nthreshold = 0.5\n"));
    let spec = format!(
        "policy = \"soft\"\nhorizon = 1_000_000\nrho = 0.9\ndelta = 0.4\nactions = [{}]\n{}",
        names.join(", "),
        costs.collect::<String>()
    );
    // Of values version 1: it may be a record that no program of today would write.
    put(&house, spec.clone(), 1, &record(200, 21, 64));
    for (path, rows) in [
        ("/experiments/old/epochs/1", 21 * 12),
        ("/experiments/old/epochs/1?quantity=3", 200),
        ("/experiments/old/epochs", 0),
    ] {
        let request = Request::get(path).header("accept-encoding", "gzip");
        let small = house.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (small.status.as_u16(), &small.headers["content-encoding"]),
            (200, &"gzip".parse().unwrap())
        );
        // Style and scripts take some 45 kB of the 150 kB that a page may have.
        assert!(
            small.bytes.len() < 60_000,
            "{path}: {} bytes",
            small.bytes.len()
        );
        let page = house.get(path).await.text();
        // Two for the legend's and the scales' drawings are not rows: only rows are labelled.
        assert_eq!(
            page.matches("class=\"strip\" role=\"img\"").count(),
            rows,
            "{path}"
        );
        assert!(
            !page.contains("<action>") && page.contains("&lt;action&gt; number 1 of many"),
            "{path}"
        );
    }
    let page = house.get("/experiments/old/epochs/1").await.text();
    assert!(
        page.contains("188 more actions")
            && page.contains("17 more costs")
            && page.contains("?quantity=20"),
        "folded"
    );
    let first = page.find("number 1 of many").unwrap();
    assert!(
        first < page.find("number 0 of many").unwrap(),
        "the one that is played comes first"
    );
    // Found again, by a program of 200 shares under 20 limits.
    let house = House::new();
    let spec = spec.replace("1_000_000", "1e12");
    let plan = Plan::of(Spec::parse(&spec, "old").unwrap().problem);
    let explored = plan.exploration_rounds.unwrap() / 200;
    put(&house, spec, VALUES_VERSION, &record(200, 21, explored));
    let found = house.get("/v1/experiments/old/epochs/1").await;
    let found = found.expect(200);
    let limits = found["limits"].as_array().unwrap();
    let costed = limits.iter().filter(|limit| limit["least"].is_number());
    assert_eq!(
        (found["recomputed"].as_bool(), costed.count()),
        (Some(true), 20)
    );
    let request = Request::get("/experiments/old/epochs/1").header("accept-encoding", "gzip");
    let small = house.send(request.body(Body::empty()).unwrap()).await;
    assert!(small.bytes.len() < 60_000, "{} bytes", small.bytes.len());
    let page = house.get("/experiments/old/epochs/1").await.text();
    for words in [
        "Of the strategies that may keep every limit",
        "By the estimates it gives",
    ] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

/// The open epoch follows its rounds; a browser that shows it already is sent nothing.
#[tokio::test]
async fn the_open_epoch_is_live() {
    let house = House::new();
    house.create("e", SHORT).await;
    let decided = house.decide("e", 1).await;
    house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    let page = house.get("/experiments/e/epochs/1").await.text();
    let hash = page
        .split("x-shown&quot;:&quot;")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap()
        .to_owned();
    let again = async |house: &House| -> Reply {
        let request = Request::get("/experiments/e/epochs/1").header("x-shown", &hash);
        house.send(request.body(Body::empty()).unwrap()).await
    };
    assert_eq!(again(&house).await.status, 204);
    house.decide("e", 1).await;
    let moved = again(&house).await;
    assert!(
        moved.status == 200 && moved.text().contains("2 to 2"),
        "{}",
        moved.text()
    );
}
