//! What an auditor takes home: the whole log as one file, heads, and that they were published.

use std::io::Cursor;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use debora_cli::audit::{Audited, Log, Verdict, audit};
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::keys::with_key;
use crate::{House, KEY, Reply, SHORT, outcomes};

/// Decides and tells this many rounds, or to the horizon.
pub async fn play(house: &House, id: &str, rounds: u64) {
    let mut played = 0;
    while played < rounds {
        let decided = house.decide(id, (rounds - played).min(10_000)).await;
        played += decided["decisions"].as_array().unwrap().len() as u64;
        house.tell(id, &outcomes(&decided, 1.0, 0.01)).await;
    }
}

/// What an audit of a log's text finds; an error if it cannot be audited.
fn audited(text: &str, head: Option<&str>) -> anyhow::Result<Verdict> {
    let mut log = Log::text(Box::new(Cursor::new(text.to_owned())), None);
    audit(&mut log, head)
}

#[track_caller]
fn equal(text: &str, head: Option<&str>) -> Audited {
    match audited(text, head) {
        Ok(Verdict::Equal(audited)) => audited,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn difference(text: &str) -> String {
    match audited(text, None) {
        Ok(Verdict::Different(_, difference)) => difference.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A spec whose log has three pages of the longest kind.
fn long() -> String {
    SHORT.replace("horizon = 64", "horizon = 20_000")
}

async fn download(house: &House, id: &str) -> Reply {
    house
        .get(&format!("/v1/experiments/{id}/log/download"))
        .await
}

#[tokio::test]
async fn the_whole_log_is_one_file_and_the_audit_takes_it() {
    let house = House::new();
    house.create("long", &long()).await;
    play(&house, "long", 20_000).await;
    let file = download(&house, "long").await;
    assert_eq!(file.status, 200);
    assert_eq!(
        file.headers["content-disposition"],
        "attachment; filename=\"long.jsonl\""
    );
    let (mut pages, mut next) = (0, String::new());
    let mut joined = String::new();
    loop {
        let path = format!("/v1/experiments/long/log?limit=10000{next}");
        let page = house.get(&path).await;
        joined += &page.text();
        pages += 1;
        let Some(cursor) = page.headers.get("debora-next") else {
            break;
        };
        next = format!("&after={}", cursor.to_str().unwrap());
    }
    assert!(pages > 2, "{pages} pages test nothing");
    assert!(file.text() == joined, "the file is not the pages in order");
    assert_eq!(equal(&joined, None).decisions, 20_000);
    download(&house, "none").await.refused(404, "no_experiment");
}

/// A store that fails in the middle ends the file with a line that no audit accepts, also if that line is taken away.
#[tokio::test]
async fn a_log_that_is_cut_off_is_not_taken_for_whole() {
    let house = House::new();
    house.create("long", &long()).await;
    play(&house, "long", 20_000).await;
    let store = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
    let damaged =
        "UPDATE epochs SET record = 'damaged' WHERE epoch = (SELECT max(epoch) FROM epochs)";
    store.execute(damaged, []).unwrap();
    let file = download(&house, "long").await;
    assert_eq!(file.status, 200, "what is read first is there");
    let text = file.text();
    let (rest, last) = text.trim_end().rsplit_once('\n').unwrap();
    let line: Value = serde_json::from_str(last).unwrap();
    assert_eq!(line["type"], "error", "{line}");
    assert!(!last.contains("damaged"), "the store's text stays there");
    let why = audited(&text, None).unwrap_err().to_string();
    assert!(why.contains("download the log again"), "{why}");
    let why = audited(rest, None).unwrap_err().to_string();
    assert!(why.contains("ends before its last line"), "{why}");
}

/// A file that is half sent waits for its turn, where a page would be refused.
#[tokio::test]
async fn a_download_outlasts_a_crowd_of_readers() {
    let house = House::new();
    house.create("long", &long()).await;
    play(&house, "long", 20_000).await;
    let request = Request::get("/v1/experiments/long/log/download");
    let response = house.app.answer(request.body(Body::empty()).unwrap()).await;
    // All places of the lane are taken, until the gate is opened.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let places = (cores / 2).max(1);
    let (open, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (taken, mut started) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..places {
        let (app, gate, taken) = (
            Arc::clone(&house.app.state),
            Arc::clone(&gate),
            taken.clone(),
        );
        tokio::spawn(async move {
            let read = move |_: &mut debora_cli::store::Store| {
                taken.send(()).unwrap();
                Ok(gate.lock().unwrap().recv()?)
            };
            app.read_page(read).await
        });
    }
    for _ in 0..places {
        started.recv().await.unwrap();
    }
    let rest = tokio::spawn(to_bytes(response.into_body(), usize::MAX));
    let refused = "debora_shed_total{reason=\"readers\"} 1";
    while !house.get("/metrics").await.text().contains(refused) {
        tokio::task::yield_now().await;
    }
    (0..places).for_each(|_| open.send(()).unwrap());
    let text = String::from_utf8(rest.await.unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(equal(&text, None).decisions, 20_000);
}

#[tokio::test]
async fn the_head_says_what_it_stands_for() {
    let house = House::new();
    house.create("e", SHORT).await;
    let heading: Value = serde_json::from_str(
        house
            .get("/v1/experiments/e/log")
            .await
            .text()
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    let first = house.get("/v1/experiments/e/head").await.expect(200);
    assert_eq!(
        first,
        json!({ "id": "e", "head": heading["genesis"], "epochs": 0, "rounds": 0, "at": "2023-11-14T22:13:20.000Z" })
    );
    house.wait(61_001);
    // Epochs of 1, 1 and 2 rounds, and the first round of the next.
    play(&house, "e", 4).await;
    let open = house.decide("e", 1).await;
    let head = house.get("/v1/experiments/e/head").await.expect(200);
    let state = house.state("e").await;
    assert_eq!(
        (&head["head"], &head["epochs"]),
        (&state["head"], &state["epoch"])
    );
    assert!(head["rounds"].as_u64().unwrap() > 0 && head["rounds"].as_u64().unwrap() <= 4);
    assert_eq!(head["at"], "2023-11-14T22:14:21.001Z");
    house.tell("e", &outcomes(&open, 1.0, 0.01)).await;
    play(&house, "e", 59).await;
    let told = house.get("/v1/experiments/e/log").await.text();
    equal(&told, head["head"].as_str());
}

#[tokio::test]
async fn a_published_head_is_an_event_that_the_audit_checks() {
    let house = House::new();
    house.create("e", SHORT).await;
    play(&house, "e", 10).await;
    let publish = "/v1/experiments/e/publish";
    let place = json!({ "where": "https://journal.example/42" });
    let first = house.post(publish, &place).await.expect(200);
    assert_eq!(first["head"], house.state("e").await["head"]);
    assert_eq!(house.post(publish, &place).await.expect(200), first);
    play(&house, "e", 54).await;
    let second = house.post(publish, &place).await.expect(200);
    assert_ne!(first["head"], second["head"]);
    let text = download(&house, "e").await.text();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["type"] == "event")
        .collect();
    let [_, noted, last] = &events[..] else {
        panic!("to repeat is not another event: {events:?}")
    };
    let what = |head: &Value| format!("published {}", head.as_str().unwrap());
    assert_eq!(noted["what"], what(&first["head"]));
    assert_eq!(noted["reason"], place["where"]);
    assert_eq!(house.post(publish, &place).await.expect(200), second);
    equal(&text, first["head"].as_str());
    // A head that is not in the chain, and two that are, each in the other's place.
    let other = text.replace(
        noted["what"].as_str().unwrap(),
        &what(&json!("ab".repeat(32))),
    );
    assert!(difference(&other).contains("the head that was published"));
    let [one, two] = [noted, last].map(|event| event["what"].as_str().unwrap());
    let swapped = text
        .replace(one, "later")
        .replace(two, one)
        .replace("later", two);
    assert!(difference(&swapped).contains("the head that was published"));
    for (body, code) in [
        (json!({ "where": " " }), "unfit"),
        (json!({ "where": "\u{7}" }), "reason"),
    ] {
        house.post(publish, &body).await.refused(422, code);
    }
}

#[tokio::test]
async fn who_publishes_needs_to_be_an_admin_and_is_named() {
    let house = House::new();
    house.create("e", SHORT).await;
    for (name, role) in [("boss", Role::Admin), ("asker", Role::Decide)] {
        set_key(&house, name, role, None);
    }
    house.wait(2_000);
    let (path, body) = ("/v1/experiments/e/publish", json!({ "where": "here" }));
    with_key(&house, "POST", path, "asker", body.clone())
        .await
        .refused(403, "wrong_role");
    with_key(&house, "POST", path, "boss", body)
        .await
        .expect(200);
    let log = with_key(
        &house,
        "GET",
        "/v1/experiments/e/log/download",
        "asker",
        json!(null),
    )
    .await;
    assert!(
        log.text()
            .contains("\"actor\":\"boss\",\"what\":\"published ")
    );
    assert!(!log.text().contains(KEY) && !log.text().contains(&token("boss")));
}

/// Its spec, published before, is what is certified afterwards.
#[tokio::test]
async fn the_seal_is_fixed_before_the_first_decision() {
    let house = House::new();
    house.create("e", SHORT).await;
    let path = "/v1/experiments/e/seal";
    let before = house.get(path).await;
    let sealed = before.expect(200);
    play(&house, "e", 64).await;
    house.wait(1_000_000);
    assert_eq!(house.get(path).await.bytes, before.bytes);
    let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
    assert_eq!(sealed["key_hash"], certificate["key_hash"]);
    assert_eq!(sealed["spec"], certificate["spec"]);
    let log = download(&house, "e").await.text();
    equal(&log, sealed["head"].as_str());
    assert!(!before.text().contains(KEY), "the key is secret");
    let page = house.get("/v1/experiments/e/seal.html").await;
    for words in [
        "Seal of short epochs",
        sealed["head"].as_str().unwrap(),
        sealed["key_hash"].as_str().unwrap(),
        "2023-11-14T22:13:20.000Z",
        "Nothing is ever compared",
        "range = [0.0, 0.02]",
    ] {
        assert!(
            page.text().contains(words),
            "{words:?} is not in\n{}",
            page.text()
        );
    }
    house
        .get("/v1/experiments/none/seal")
        .await
        .refused(404, "no_experiment");
}

#[tokio::test]
async fn the_certificate_can_be_read_and_kept() {
    let house = House::new();
    let spec = SHORT
        .replace("short epochs", "<script>alert(1)</script>")
        .replace("left", "<img src=x>");
    house.create("e", &spec).await;
    let page = "/v1/experiments/e/certificate.html";
    house.get(page).await.refused(409, "not_over");
    play(&house, "e", 10).await;
    house.wait(61_001);
    let reason = json!({ "reason": "the budget is <b>spent</b>" });
    house
        .post("/v1/experiments/e/close", &reason)
        .await
        .expect(200);
    house.wait(1_000);
    let place = json!({ "where": "a journal" });
    house
        .post("/v1/experiments/e/publish", &place)
        .await
        .expect(200);
    let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
    assert_eq!(
        (&certificate["created"], &certificate["ended"]),
        (
            &json!("2023-11-14T22:13:20.000Z"),
            &json!("2023-11-14T22:14:21.001Z")
        )
    );
    assert_eq!(
        certificate["recommendation"]["shares"][1]["name"],
        json!("right")
    );
    let file = house.get(page).await;
    let text = file.text();
    for words in [
        "Certificate of &lt;script&gt;alert(1)&lt;/script&gt;",
        "after 10 of 64 rounds",
        "&lt;img src=x&gt;",
        "Were the limits kept?",
        "on average 0.01 in 10 rounds",
        "Outcomes arrive evenly across actions",
        "2023-11-14T22:14:21.001Z",
        "closed: the budget is &lt;b&gt;spent&lt;/b&gt;",
        "a journal",
        "debora audit e.jsonl --head ",
        certificate["head"].as_str().unwrap(),
        certificate["key"].as_str().unwrap(),
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    // One file: nothing runs, nothing is fetched.
    for words in ["<script", "src=\"", "href=", "url("] {
        assert!(!text.contains(words), "{words:?} is in\n{text}");
    }
    let policy = &file.headers["content-security-policy"];
    assert!(policy.to_str().unwrap().starts_with("default-src 'none'"));
    let within = house.get("/experiments/e/certificate").await;
    assert!(within.text().contains("after 10 of 64 rounds") && !within.text().contains("<style"));
    assert!(
        house
            .get("/experiments/e/seal")
            .await
            .text()
            .contains("Seal of")
    );
}
