//! The page of one experiment: rates, alerts and who is told what, the numbers behind it, and what it costs. What it says in each
//! state, the wire's files have.

use std::io::Write as _;

use axum::body::Body;
use axum::http::Request;
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::{House, Reply};

/// Explores for some ten thousand rounds, with three clear tests on the way.
const CLEAR: &str = r#"
name = "buttons"
policy = "free"
horizon = 100_000_000
rho = 0.5
actions = ["green", "blue"]
[reward]
name = "clicks"
"#;

/// Estimates after some hundred rounds, and a limit that one action exceeds.
const SOFT: &str = r#"
name = "routing"
policy = "soft"
horizon = 20_000
rho = 0.9
delta = 0.1
actions = ["small", "large"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.01
"#;

/// Plays so many rounds: action by action a reward and a price, each the same every time.
async fn play(house: &House, id: &str, rounds: u64, values: &[(f64, f64)]) {
    let mut played = 0;
    while played < rounds {
        let decided = house.decide(id, (rounds - played).min(2_000)).await;
        let decisions = decided["decisions"].as_array().unwrap();
        let tell = |decision: &Value| {
            let (reward, price) = values[decision["action"].as_u64().unwrap() as usize];
            let costs = if price.is_nan() {
                json!([])
            } else {
                json!([price])
            };
            json!({ "round": decision["round"], "reward": reward, "costs": costs })
        };
        played += decisions.len() as u64;
        house.tell(id, &decisions.iter().map(tell).collect()).await;
    }
}

/// A page's words, without its tags.
fn words(page: &Reply) -> String {
    let text = page.text();
    let mut words = String::new();
    let mut inside = false;
    for letter in text.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            _ if !inside => words.push(letter),
            _ => {}
        }
    }
    words.replace("&quot;", "\"").replace('\u{a0}', " ")
}

#[track_caller]
fn says(page: &Reply, sentences: &[&str]) {
    let words = words(page);
    assert_eq!(page.status.as_u16(), 200, "{words}");
    for sentence in sentences {
        assert!(words.contains(sentence), "{sentence:?} is not in\n{words}");
    }
}

#[track_caller]
fn silent(page: &Reply, sentences: &[&str]) {
    let words = words(page);
    for sentence in sentences {
        assert!(!words.contains(sentence), "{sentence:?} is in\n{words}");
    }
}

async fn shown(house: &House, id: &str) -> Reply {
    house.get(&format!("/experiments/{id}")).await
}

#[tokio::test]
async fn a_reader_learns_who_can_do_what_is_advised() {
    let house = House::new();
    house.create("e", SOFT).await;
    set_key(&house, "boss", Role::Admin, None);
    set_key(&house, "reader", Role::Read, None);
    house.app.state.access.forget();
    let seen_by = async |name: &str| {
        let request = Request::get("/experiments/e")
            .header("authorization", format!("Bearer {}", token(name)));
        house.send(request.body(Body::empty()).unwrap()).await
    };
    let words = "Someone whose key has role admin can pause, resume or close it.";
    says(&seen_by("reader").await, &[words]);
    silent(&seen_by("boss").await, &[words]);
}

#[tokio::test]
async fn an_exploration_that_waits_has_no_time() {
    let house = House::new();
    house.create("e", CLEAR).await;
    house.decide("e", 10).await;
    house.wait(60_000);
    says(&shown(&house, "e").await, &["at the current rate"]);
    house.decide("e", 10_000).await;
    while house.state("e").await["waiting"] == false {
        house.decide("e", 10_000).await;
    }
    silent(&shown(&house, "e").await, &["at the current rate"]);
}

/// A promise that outcomes contradict, a false premise, and losses that depend on the action.
const ALARMING: &str = r#"
policy = "hard"
horizon = 20_000
rho = 0.9
delta = 0.1
actions = ["left", "right"]
[[cost]]
name = "price"
threshold = 0.5
[safe]
strategy = { left = 1.0 }
cost = { price = 0.1 }
[service]
outcome_wait = "10s"
"#;

#[tokio::test]
async fn every_alert_of_the_state_is_on_the_page_and_counted_in_the_list() {
    let house = House::new();
    house.create("e", ALARMING).await;
    for _ in 0..12 {
        let decided = house.decide("e", 500).await;
        let told = decided["decisions"].as_array().unwrap().iter();
        let told = told.filter(|decision| {
            decision["action"] == 0 || decision["round"].as_u64().unwrap() % 3 > 0
        });
        let told =
            told.map(|decision| json!({ "round": decision["round"], "reward": 0, "costs": [0.9] }));
        house.tell("e", &told.collect()).await;
        house.wait(10_000);
        house.service.tick().await.unwrap();
    }
    let state = house.state("e").await;
    let alerts: Vec<&str> = state["alerts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|alert| alert.as_str().unwrap())
        .collect();
    let kinds = ["Policy hard promised", "Whether an outcome goes missing"];
    for kind in kinds {
        assert!(
            alerts.iter().any(|alert| alert.starts_with(kind)),
            "{kind}: {alerts:?}"
        );
    }
    let page = shown(&house, "e").await;
    says(&page, &alerts);
    assert_eq!(page.text().matches("class=\"alarm\"").count(), alerts.len());
    let list = house.get("/").await.text();
    assert!(
        list.contains(&format!(">{} alerts</a>", alerts.len())),
        "{list}"
    );
}

#[tokio::test]
async fn the_rate_falls_while_nobody_asks() {
    let house = House::new();
    house.create("e", CLEAR).await;
    play(&house, "e", 300, &[(0.5, f64::NAN), (0.5, f64::NAN)]).await;
    // 300 rounds a minute ago are five a second.
    house.wait(60_000);
    says(
        &shown(&house, "e").await,
        &[
            "The current rate is 5 a second: 300 rounds in the last 60 s, the last one at 2023-11-14 22:13:20 UTC",
        ],
    );
    house.wait(9 * 60_000 - 1);
    says(
        &shown(&house, "e").await,
        &["The current rate is 30 a minute"],
    );
    // As in the list, which has no rate after ten minutes either.
    house.wait(1);
    let idle = shown(&house, "e").await;
    says(
        &idle,
        &["No decision in the last 10 minutes; the last one was at 2023-11-14 22:13 UTC."],
    );
    assert!(!words(&idle).contains("current rate"));
}

#[tokio::test]
async fn at_a_standstill_the_horizon_has_no_time() {
    let house = House::new();
    house.create("e", SOFT).await;
    house.decide("e", 10).await;
    house.wait(60_000);
    says(&shown(&house, "e").await, &["at the current rate"]);
    house.decide("e", 10_000).await;
    let standstill = |page: Reply, until: &str| {
        says(&page, &[until]);
        assert!(!words(&page).contains("at the current rate"));
    };
    let waiting = shown(&house, "e").await;
    standstill(waiting, "not before the outstanding outcomes are known");
    house
        .post("/v1/experiments/e/pause", &json!({}))
        .await
        .expect(200);
    standstill(shown(&house, "e").await, "not before it is resumed");
}

/// Numbers as the page writes them, to three digits.
fn amount(value: &Value) -> String {
    debora::measure::words::amount(value.as_f64().unwrap())
}

#[tokio::test]
async fn every_table_is_also_data_with_the_same_numbers() {
    let house = House::new();
    house.create("e", &SOFT.replace("small", "=small")).await;
    play(&house, "e", 3_000, &[(0.2, 0.001), (0.9, 0.019)]).await;
    let state = house.state("e").await;
    let page = words(&shown(&house, "e").await);
    let json = async |name: &str| {
        let reply = house
            .get(&format!("/experiments/e/figures/{name}.json"))
            .await;
        assert_eq!(reply.headers["content-type"], "application/json");
        reply.expect(200)
    };
    let means = json("means").await;
    for (row, mean) in means
        .as_array()
        .unwrap()
        .iter()
        .zip(state["means"].as_array().unwrap())
    {
        assert_eq!(row["observed_mean"], mean["observed"]["mean"]);
        assert_eq!(row["cell_from"], mean["estimate"]["cell"]["low"]);
        assert_eq!(row["name"], mean["name"]);
        assert!(page.contains(&amount(&row["observed_mean"])));
        assert!(page.contains(&amount(&row["estimate"])));
    }
    let limits = json("limits").await;
    assert_eq!(limits[0]["average"], state["limits"][0]["realised"]);
    assert_eq!(limits[0]["verdict"], state["limits"][0]["verdict"]);
    assert!(page.contains(&amount(&limits[0]["average"])));
    let counts = json("counts").await;
    assert_eq!(counts[0]["decided"], state["actions"][0]["decided"]);
    assert_eq!(
        (&counts[2]["decided"], &counts[2]["action"]),
        (&json!(3_000), &Value::Null)
    );
    let strategy = json("strategy").await;
    let last = strategy.as_array().unwrap().last().unwrap();
    assert_eq!(last["last_round"], 3_000);
    assert_eq!(last["probability"], state["strategy"]["large"]);
    assert_eq!(
        (&strategy[0]["first_round"], &strategy[0]["kind"]),
        (&json!(1), &json!("explore"))
    );

    let csv = house.get("/experiments/e/figures/counts.csv").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    assert!(
        text.starts_with(
            "action,name,probability,decided,told,outstanding,imputed,late,overtime\r\n"
        )
    );
    assert!(text.contains("\r\n0,'=small,"), "{text}");
    for wrong in [
        "strategy-dark.svg",
        "strategy.svg",
        "other.csv",
        "csv",
        "means.",
    ] {
        let reply = house.get(&format!("/experiments/e/figures/{wrong}")).await;
        assert_eq!(reply.status, 404, "{wrong}");
    }
}

#[tokio::test]
async fn the_axis_is_chosen_by_links_that_the_refresh_keeps() {
    let house = House::new();
    house.create("e", SOFT).await;
    play(&house, "e", 3_000, &[(0.2, 0.001), (0.9, 0.019)]).await;
    let mut drawn = Vec::new();
    for query in [
        "?x=rounds&amp;scale=log",
        "?x=rounds&amp;scale=linear",
        "?x=clock",
    ] {
        let page = house
            .get(&format!("/experiments/e{}", query.replace("&amp;", "&")))
            .await;
        let text = page.text();
        assert!(
            text.contains(&format!("hx-get=\"/experiments/e{query}\"")),
            "{text}"
        );
        assert!(
            text.contains(&format!(
                "href=\"/experiments/e{query}\" aria-current=\"true\""
            )),
            "{text}"
        );
        let figure = text.split("<svg class=\"chart ").nth(1).unwrap();
        drawn.push(figure.split("</figure>").next().unwrap().to_owned());
    }
    assert!(
        drawn[0] != drawn[1] && drawn[1] != drawn[2],
        "each axis has its figure"
    );
    assert!(
        drawn[0].contains("Epoch 0: rounds 1 to") && drawn[0].contains("50 %  large"),
        "{}",
        drawn[0]
    );
    assert_eq!(house.get("/experiments/e?x=moon").await.status, 422);
}

async fn refresh(house: &House, id: &str) -> Reply {
    let request = Request::get(format!("/experiments/{id}")).header("x-shown", "something else");
    house.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn refreshes_share_a_rendering_for_a_second_and_a_page_that_is_opened_is_fresh() {
    let house = House::new();
    house.create("e", SOFT).await;
    says(&refresh(&house, "e").await, &["0 of 20,000 rounds"]);
    house.decide("e", 1).await;
    says(&refresh(&house, "e").await, &["0 of 20,000 rounds"]);
    says(&shown(&house, "e").await, &["1 of 20,000 rounds"]);
    says(&refresh(&house, "e").await, &["1 of 20,000 rounds"]);
    house.decide("e", 1).await;
    house.wait(1_000);
    says(&refresh(&house, "e").await, &["2 of 20,000 rounds"]);
}

#[tokio::test]
async fn two_hundred_actions_and_twenty_costs_are_a_small_page() {
    let house = House::new();
    let name = |action: u64| format!("<i>{action}</i> {}", "long".repeat(20));
    let actions: Vec<String> = (0..200).map(name).collect();
    let costs: String = (0..20)
        .map(|cost| format!("[[cost]]\nname = \"cost {cost}\"\nthreshold = 0.5\n"))
        .collect();
    let spec = format!(
        "policy = \"soft\"\nhorizon = 1_000_000\nrho = 0.5\nactions = {}\n[reward]\nname = \"quality\"\n{costs}",
        json!(actions)
    );
    house.create("e", &spec).await;
    let decided = house.decide("e", 2_000).await;
    let tell = |decision: &Value| json!({ "round": decision["round"], "reward": 0.5, "costs": vec![0.25; 20] });
    let told = decided["decisions"].as_array().unwrap().iter().map(tell);
    house.tell("e", &told.collect()).await;
    let page = shown(&house, "e").await;
    says(
        &page,
        &[
            "193 others",
            "176 others",
            "actions that were played most; the data has all.",
        ],
    );
    assert!(!page.text().contains("<i>"), "a name is text");
    let mut small = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
    small.write_all(&page.bytes).unwrap();
    let bytes = small.finish().unwrap().len();
    assert!(bytes < 50_000, "{bytes} bytes");
    let means = house
        .get("/experiments/e/figures/means.json")
        .await
        .expect(200);
    assert_eq!(means.as_array().unwrap().len(), 4_200);
}

#[tokio::test]
async fn the_report_is_one_file_that_loads_nothing() {
    let house = House::new();
    house
        .create("e", &SOFT.replace("routing", "<script>"))
        .await;
    play(&house, "e", 3_000, &[(0.2, 0.001), (0.9, 0.019)]).await;
    let report = house.get("/experiments/e/report.html").await;
    assert_eq!(
        report.headers["content-disposition"],
        "attachment; filename=\"e-report.html\""
    );
    says(
        &report,
        &[
            "Report of 2023-11-14 22:13:20 UTC",
            "The best strategy known so far is",
            "What comes next",
            "Were the limits kept?",
            "Key hash",
            "threshold = 0.01",
        ],
    );
    let text = report.text();
    for outside in [
        "<script", "<link", "src=", "href=", "hx-", "@import", "url(http",
    ] {
        assert!(!text.contains(outside), "{outside}");
    }
    // Both axes, as nothing can be chosen in a file.
    assert_eq!(text.matches("<svg class=\"chart ").count(), 2);
    assert!(text.contains("<style>") && text.contains("default-src 'none'"));
    assert!(
        shown(&house, "e")
            .await
            .text()
            .contains("/experiments/e/report.html")
    );
}

#[tokio::test]
async fn an_experiment_of_another_values_version_shows_what_is_recorded() {
    let house = House::new();
    house.create("e", SOFT).await;
    play(&house, "e", 3_000, &[(0.2, 0.001), (0.9, 0.019)]).await;
    let store = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
    store
        .execute("UPDATE experiments SET values_version = 1", [])
        .unwrap();
    let page = shown(&house, "e").await;
    says(
        &page,
        &[
            "This experiment was decided with values version 1, and this program has 3",
            "Serve it with a debora that has values version 1",
            "3,000",
            "The strategy of epoch",
            "large",
        ],
    );
}
