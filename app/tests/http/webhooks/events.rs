//! What is told, and when: each kind of event, once.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::{Answer, Receiver};
use super::{Node, SHORT, Scratch};

/// All messages of a type, once there is one, and the words of the first.
#[track_caller]
fn of_type(receiver: &Receiver, kind: &str, experiment: &str) -> Vec<Value> {
    receiver.wait("/hook", 20, |here| {
        let all = here.at("/hook").into_iter().map(|message| message.json());
        let those: Vec<Value> = all
            .filter(|body| body["type"] == kind && body["data"]["experiment"] == experiment)
            .collect();
        (!those.is_empty()).then_some(those)
    })
}

#[track_caller]
fn says(message: &Value, words: &str) {
    let said = message["data"]["words"].as_str().unwrap();
    assert!(said.contains(words), "{said}");
}

#[test]
fn each_kind_of_event_is_told_once_with_its_facts() {
    let folder = Scratch::new("hooks_events");
    let store = folder.join("store.db").display().to_string();
    let receiver = Receiver::start(|_, _| Answer::Status(200));
    let mut node = Node::start(&store);
    let hook = json!({ "name": "ops", "url": receiver.url("/hook"), "wait_seconds": 2 });
    node.post("/v1/webhooks", hook);
    let slack = json!({ "name": "slack", "url": receiver.url("/slack"), "format": "slack",
        "template": "<https://debora.example{link}|{experiment}> {words}", "events": ["experiment.committed"] });
    node.post("/v1/webhooks", slack);

    let free = "policy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b & c']\n";
    node.create("clear", free);
    let soft = "policy = 'soft'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.4\ngrowth = 2\nactions = ['a', 'b']\n\
        [[cost]]\nname = 'price'\nthreshold = 0.2\n";
    node.create("dear", soft);
    let lossy = format!("{soft}[service]\noutcome_wait = '1s'\non_wait = 'serve'\n");
    node.create("lossy", &lossy);
    node.create("slow", SHORT);

    for _ in 0..4 {
        node.play("clear", 2_000, |action| Some((action as f64, -1.0)));
        node.play("dear", 5_000, |_| Some((0.5, 0.9)));
    }
    // Outcomes of one action alone go missing.
    node.play("lossy", 500, |action| (action == 0).then_some((0.5, 0.1)));
    // Round 1 is all of epoch 0, and nobody tells it.
    node.play("slow", 1, |_| None);

    let committed = of_type(&receiver, "experiment.committed", "clear");
    assert_eq!(committed[0]["data"]["action"], "b & c");
    says(&committed[0], "is played to the horizon");
    let slack = receiver.wait("/slack", 10, |here| here.at("/slack").first().cloned());
    let text = slack.json()["text"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("<https://debora.example/experiments/clear|clear> "),
        "{text}"
    );
    assert!(
        text.contains("b &amp; c") && !text.contains("b & c"),
        "{text}"
    );
    let infeasible = of_type(&receiver, "experiment.infeasible", "dear");
    says(&infeasible[0], "no strategy keeps every limit");
    let exceeded = of_type(&receiver, "limit.exceeded", "dear");
    assert_eq!(exceeded[0]["data"]["cost"], "price");
    assert_eq!(exceeded[0]["data"]["promised"], false);
    says(&exceeded[0], "The limit of price was exceeded by 0.7");
    let uneven = of_type(&receiver, "sample_ratio.uneven", "lossy");
    let state = node.get("/v1/experiments/lossy/state");
    says(
        &uneven[0],
        state["sample_ratio"]["sentence"].as_str().unwrap(),
    );
    let waiting = of_type(&receiver, "outcomes.waiting", "slow");
    assert_eq!(waiting[0]["data"]["outstanding"], 1);
    assert!(waiting[0]["data"]["waited_seconds"].as_u64().unwrap() >= 2);
    for kind in ["experiment.done", "limit.exceeded"] {
        let told = receiver
            .at("/hook")
            .into_iter()
            .map(|message| message.json());
        let mut of_slow = told.filter(|body| body["data"]["experiment"] == "slow");
        assert!(of_slow.all(|body| body["type"] != kind), "{kind}");
    }

    // Another start looks at all of it again, and has nothing to add but what is new: the next epoch waits, too.
    node.kill();
    node.post(
        "/v1/experiments/slow/outcomes",
        json!([{ "round": 1, "reward": 0.5, "costs": [0.5] }]),
    );
    node.play("slow", 2, |_| None);
    node.post(
        "/v1/experiments/clear/close",
        json!({ "reason": "it is clear" }),
    );
    let done = of_type(&receiver, "experiment.done", "clear");
    assert_eq!(done[0]["data"]["status"], "closed");
    assert_eq!(done[0]["data"]["recommendation"]["b & c"], 1.0);
    receiver.wait("/hook", 10, |here| {
        let waiting = of_type(here, "outcomes.waiting", "slow");
        (waiting.len() == 2).then_some(())
    });
    thread::sleep(Duration::from_secs(2));
    for (kind, experiment) in [
        ("experiment.committed", "clear"),
        ("experiment.done", "clear"),
        ("experiment.infeasible", "dear"),
        ("limit.exceeded", "dear"),
        ("sample_ratio.uneven", "lossy"),
    ] {
        assert_eq!(of_type(&receiver, kind, experiment).len(), 1, "{kind}");
    }
    let epochs: Vec<_> = of_type(&receiver, "outcomes.waiting", "slow")
        .iter()
        .map(|message| message["data"]["epoch"].clone())
        .collect();
    assert_eq!(epochs, [0, 1]);
    assert_eq!(
        receiver.at("/slack").len(),
        1,
        "it asked for one event alone"
    );
}
