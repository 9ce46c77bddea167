//! The metrics of experiments: what `/state` says, of so many and no more, in bounded time; and the server's log in OpenTelemetry's words.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::{House, SHORT};

/// Two actions, and a price with a limit of 0.5.
fn priced(policy: &str) -> String {
    let safe = match policy {
        "hard" => "[safe]\nstrategy = { left = 1.0 }\ncost = { price = 0.1 }\n",
        _ => "",
    };
    format!(
        "policy = '{policy}'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n[[cost]]\n\
         name = 'price'\nthreshold = 0.5\n{safe}"
    )
}

/// Decides and tells, so often: the reward is the action's number.
async fn play(house: &House, id: &str, times: u64, costs: &Value) {
    for _ in 0..times {
        let decided = house.decide(id, 500).await;
        let decisions = decided["decisions"].as_array().unwrap().iter();
        let told = decisions.map(|decision| json!({ "round": decision["round"], "reward": decision["action"], "costs": costs }));
        house.tell(id, &told.collect()).await;
    }
}

/// The metrics, once this much is known: a debug build takes several scrapes for it.
async fn scraped(house: &House, known: impl Fn(&str) -> bool) -> String {
    for _ in 0..100 {
        let reply = house.get("/metrics").await;
        assert_eq!(reply.status, 200);
        if known(&reply.text()) {
            return reply.text();
        }
    }
    panic!("still not known: {}", house.get("/metrics").await.text());
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let (_, value) = lines.find(|(name, _)| *name == series)?;
    Some(value.parse().unwrap())
}

#[tokio::test]
async fn the_metrics_say_what_the_state_says() {
    let house = House::new();
    for (id, spec, times, price) in [
        ("soft", priced("soft"), 3, 0.25),
        ("broken", priced("hard"), 4, 1.0),
        ("exceeds", priced("soft"), 4, 1.0),
        ("paused", priced("soft"), 1, 0.5),
        ("waiting", SHORT.to_owned(), 0, 0.0),
        ("over", priced("soft"), 1, 0.5),
    ] {
        house.create(id, &spec).await;
        play(&house, id, times, &json!([price])).await;
    }
    let free = "policy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b']\n";
    house.create("committed", free).await;
    while house.state("committed").await["kind"] != "commit" {
        play(&house, "committed", 1, &json!([])).await;
    }
    house.decide("waiting", 1).await;
    house
        .post_text("/v1/experiments/paused/pause", "{}")
        .await
        .expect(200);
    house
        .post_text("/v1/experiments/over/close", "{}")
        .await
        .expect(200);
    let ids = [
        "soft",
        "broken",
        "exceeds",
        "committed",
        "paused",
        "waiting",
    ];
    let text = scraped(&house, |text| {
        let age = |id| {
            value(
                text,
                &format!("debora_experiment_age_seconds{{experiment=\"{id}\"}}"),
            )
        };
        ids.iter().all(|id| age(id) == Some(0.0))
    })
    .await;
    for id in ids {
        let state = house.state(id).await;
        same(&text, id, &state);
        let word = match id {
            "soft" | "broken" | "exceeds" => "running",
            id => id,
        };
        for state in ["running", "waiting", "committed", "paused"] {
            let series =
                format!("debora_experiment_state{{experiment=\"{id}\",state=\"{state}\"}}");
            assert_eq!(
                value(&text, &series),
                Some(f64::from(state == word)),
                "{series}"
            );
        }
    }
    // The states are what they are called, or nothing was tried.
    let broken = "debora_experiment_alerts{experiment=\"broken\",kind=\"broken_promise\"}";
    assert_eq!(value(&text, broken), Some(1.0));
    assert_eq!(
        house.state("exceeds").await["limits"][0]["verdict"],
        "exceeded"
    );
    assert!(!text.contains("experiment=\"over\""));
    for (status, count) in [
        ("running", 5.0),
        ("paused", 1.0),
        ("closed", 1.0),
        ("done", 0.0),
    ] {
        assert_eq!(
            value(&text, &format!("debora_experiments{{status=\"{status}\"}}")),
            Some(count)
        );
    }
}

/// Whether the metrics of an experiment are its state.
#[track_caller]
fn same(text: &str, id: &str, state: &Value) {
    let of = |name: &str, more: &str| {
        value(
            text,
            &format!("debora_experiment_{name}{{experiment=\"{id}\"{more}}}"),
        )
    };
    let told = state["decided"].as_u64().unwrap()
        - state["outstanding"].as_u64().unwrap()
        - state["imputed"].as_u64().unwrap();
    for (name, more, expected) in [
        ("rounds_total", "", &state["decided"]),
        ("outcomes_total", ",source=\"told\"", &json!(told)),
        ("outcomes_total", ",source=\"imputed\"", &state["imputed"]),
        ("outcomes_total", ",source=\"late\"", &state["late"]),
        ("overtime_total", "", &state["overtime"]),
        ("outstanding_rounds", "", &state["outstanding"]),
        ("epoch", "", &state["epoch"]),
        ("horizon_rounds", "", &state["horizon"]),
        (
            "infeasible",
            "",
            &json!(u8::from(state["kind"] == "infeasible")),
        ),
        ("readable", "", &json!(1)),
    ] {
        assert_eq!(of(name, more), expected.as_f64(), "{id} {name}{more}");
    }
    for (action, share) in state["strategy"].as_object().unwrap() {
        assert_eq!(
            of("strategy_ratio", &format!(",action=\"{action}\"")),
            share.as_f64(),
            "{id} {action}"
        );
    }
    for limit in state["limits"].as_array().unwrap() {
        let cost = format!(",cost={}", limit["name"]);
        assert_eq!(
            of("cost_average", &cost),
            limit["realised"].as_f64(),
            "{id}"
        );
        assert_eq!(
            of("cost_threshold", &cost),
            limit["threshold"].as_f64(),
            "{id}"
        );
        for verdict in ["kept", "exceeded", "unknown"] {
            let is = f64::from(limit["verdict"] == verdict);
            assert_eq!(
                of("limit_verdict", &format!("{cost},verdict=\"{verdict}\"")),
                Some(is),
                "{id}"
            );
        }
    }
    let kinds = ["broken_promise", "uneven_loss"];
    let alerts = kinds.map(|kind| of("alerts", &format!(",kind=\"{kind}\"")).unwrap());
    assert_eq!(
        alerts.iter().sum::<f64>(),
        state["alerts"].as_array().unwrap().len() as f64,
        "{id}"
    );
}

#[tokio::test]
async fn of_many_experiments_those_active_last_are_shown() {
    let house = House::new();
    let names: Vec<String> = (0..203).map(|number| format!("e-{number}")).collect();
    for id in &names {
        house.create(id, SHORT).await;
        house.wait(1);
    }
    let shows = |text: &str, id: &str| {
        text.contains(&format!("debora_experiment_epoch{{experiment=\"{id}\"}}"))
    };
    let text = scraped(&house, |text| {
        value(text, "debora_experiments_shown") == Some(200.0)
    })
    .await;
    assert_eq!(
        value(&text, "debora_experiments{status=\"running\"}"),
        Some(203.0)
    );
    // The oldest are left out.
    assert_eq!(names.iter().filter(|id| shows(&text, id)).count(), 200);
    assert!(!(shows(&text, "e-0") || shows(&text, "e-2")) && shows(&text, "e-3"));
    // Until something happens to one of them.
    house.wait(1);
    house.decide("e-0", 1).await;
    let text = scraped(&house, |text| shows(text, "e-0")).await;
    assert!(!shows(&text, "e-3") && shows(&text, "e-4"));
    // What is over makes room.
    house
        .post_text("/v1/experiments/e-4/close", "{}")
        .await
        .expect(200);
    let text = scraped(&house, |text| shows(text, "e-3")).await;
    assert!(!shows(&text, "e-4"));
}

#[tokio::test]
async fn of_many_actions_the_most_probable_are_shown() {
    let house = House::new();
    let actions: Vec<String> = (0..50).map(|number| format!("a{number}")).collect();
    let spec = format!("policy = 'free'\nhorizon = 1e6\nrho = 0.5\nactions = {actions:?}\n");
    house.create("e", &spec).await;
    let text = scraped(&house, |text| {
        text.contains("debora_experiment_strategy_ratio")
    })
    .await;
    let shown = text
        .lines()
        .filter(|line| line.starts_with("debora_experiment_strategy_ratio{"))
        .count();
    assert_eq!(shown, 20);
}

/// A scrape waits for nobody who reads: it shows what the last one found, and how old that is.
#[tokio::test]
async fn a_scrape_beside_slow_readers_shows_what_was_known() {
    let house = House::new();
    house.create("e", SHORT).await;
    let rounds = "debora_experiment_rounds_total{experiment=\"e\"}";
    let age = "debora_experiment_age_seconds{experiment=\"e\"}";
    scraped(&house, |text| {
        value(text, rounds) == Some(0.0) && value(text, age) == Some(0.0)
    })
    .await;
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let slow: Vec<_> = (0..(cores / 2).max(1))
        .map(|_| {
            let (app, gate) = (Arc::clone(&house.app.state), Arc::clone(&gate));
            let read = async move {
                app.read_page(move |_| Ok(gate.lock().unwrap().recv()?))
                    .await
                    .is_ok()
            };
            tokio::spawn(read)
        })
        .collect();
    tokio::task::yield_now().await;
    house.decide("e", 1).await;
    house.wait(5_000);
    let begun = std::time::Instant::now();
    let text = house.get("/metrics").await.text();
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    assert_eq!(
        (value(&text, rounds), value(&text, age)),
        (Some(0.0), Some(5.0))
    );
    assert_eq!(value(&text, "debora_experiments_age_seconds"), Some(5.0));
    // The counters of the node itself are never old.
    assert_eq!(
        value(&text, "debora_decisions_total{kind=\"round\"}"),
        Some(1.0)
    );
    slow.iter().for_each(|_| open.send(()).unwrap());
    scraped(&house, |text| value(text, rounds) == Some(1.0)).await;
}

/// What is logged.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn decisions_and_traces_are_logged_as_open_telemetry_names_them() {
    let house = House::new();
    house.create("e", SHORT).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let ask = || {
        let request =
            Request::post("/v1/experiments/e/decisions").header("content-type", "application/json");
        let request = request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
        request
            .body(Body::from(
                "{\"n\":1,\"request_key\":\"somebody@example.org\"}",
            ))
            .unwrap()
    };
    let logged = |level| {
        let lines = LogLines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || writer.clone());
        (lines, tracing::subscriber::set_default(subscriber.finish()))
    };
    let (lines, guard) = logged(tracing::Level::DEBUG);
    for _ in 0..2 {
        house.send(ask()).await.expect(200);
    }
    drop(guard);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let all: Vec<_> = text
        .lines()
        .filter(|line| line.contains("feature_flag.evaluation"))
        .collect();
    for (line, reason) in all.iter().zip(["split", "cached"]) {
        for field in [
            "feature_flag.key=\"e\"",
            "feature_flag.provider.name=\"debora\"",
            &format!("feature_flag.result.reason=\"{reason}\""),
            "debora.round=1",
            "debora.epoch=0",
        ] {
            assert!(line.contains(field), "{field} is not in {line}");
        }
        let named = ["left", "right"]
            .map(|name| line.contains(&format!("feature_flag.result.variant=\"{name}\"")));
        assert!(named[0] != named[1], "{line}");
    }
    assert_eq!(all.len(), 2, "{text}");
    assert_eq!(
        text.matches(&format!("trace_id=\"{trace}\"")).count(),
        2,
        "{text}"
    );
    assert!(!text.contains("somebody"), "{text}");
    // A flag of an experiment that gives nothing is an evaluation, too.
    house
        .post("/v1/experiments/e/pause", &json!({}))
        .await
        .expect(200);
    let (lines, guard) = logged(tracing::Level::DEBUG);
    let flag = json!({ "context": { "targetingKey": "another@example.org" } });
    house
        .post("/ofrep/v1/evaluate/flags/e", &flag)
        .await
        .expect(200);
    drop(guard);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let mut evaluations = text
        .lines()
        .filter(|line| line.contains("feature_flag.evaluation"));
    let line = evaluations.next().unwrap();
    let words = [
        "key=\"e\"",
        "result.reason=\"disabled\"",
        "result.variant=\"default\"",
    ];
    assert!(
        words
            .iter()
            .all(|word| line.contains(&format!("feature_flag.{word}"))),
        "{line}"
    );
    assert!(
        evaluations.next().is_none() && !text.contains("another"),
        "{text}"
    );
    house
        .post("/v1/experiments/e/resume", &json!({}))
        .await
        .expect(200);
    let (lines, guard) = logged(tracing::Level::INFO);
    house.send(ask()).await.expect(200);
    drop(guard);
    assert!(lines.0.lock().unwrap().is_empty());
}
