//! Experiments as feature flags: what each state answers, by the protocol's words, and outcomes told by those who only know
//! their users.

use std::collections::BTreeMap;
use std::io::Cursor;

use axum::body::Body;
use axum::http::Request;
use debora_cli::audit::{Audited, Log, Verdict, audit};
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::keys::scope_key;
use crate::record::play;
use crate::{House, Reply, SHORT, short_with};

const BULK: &str = "/ofrep/v1/evaluate/flags";

/// A mixture of both actions is best: the better one is too dear to be played always.
const MIXED: &str = "policy = 'soft'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n[[cost]]\n\
    name = 'price'\nthreshold = 0.5\n";

fn context(user: &str) -> Value {
    json!({ "context": { "targetingKey": user, "plan": "premium", "age": 42 } })
}

async fn evaluated(house: &House, id: &str, user: &str) -> Value {
    let reply = house.post(&format!("{BULK}/{id}"), &context(user)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.headers["content-type"], "application/json");
    let flag = reply.json();
    assert_is_flag(&flag, id);
    flag
}

/// What OFREP 0.3 asks of a successful evaluation.
#[track_caller]
fn assert_is_flag(flag: &Value, id: &str) {
    assert_eq!(flag["key"], id, "{flag}");
    let reasons = ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN"];
    assert!(
        reasons.contains(&flag["reason"].as_str().unwrap()),
        "{flag}"
    );
    // Absent, not null, where the application's default holds.
    assert!(
        flag.get("value").is_none_or(Value::is_string) && flag["variant"].is_string(),
        "{flag}"
    );
    for (name, value) in flag["metadata"].as_object().unwrap() {
        let primitive = value.is_boolean() || value.is_string() || value.is_number();
        assert!(primitive, "{name}: {flag}");
    }
}

/// What it asks of a failed one.
#[track_caller]
fn assert_failed(reply: &Reply, status: u16, code: &str, key: Option<&str>) {
    let body = reply.expect(status);
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(body["errorCode"], code, "{body}");
    assert!(body["errorDetails"].as_str().unwrap().len() > 10, "{body}");
    assert_eq!(body.get("key").and_then(Value::as_str), key, "{body}");
}

/// What the audit of a log finds that it must find equal.
pub async fn equal(house: &House, id: &str) -> Audited {
    let log = house
        .get(&format!("/v1/experiments/{id}/log/download"))
        .await;
    let mut log = Log::text(Box::new(Cursor::new(log.text())), None);
    match audit(&mut log, None).unwrap() {
        Verdict::Equal(audited) => audited,
        different => panic!("{different:?}"),
    }
}

/// Tells by the user alone; the receipt.
async fn tell(house: &House, id: &str, user: &str) -> Value {
    let outcome = json!([{ "request_key": user, "reward": 1, "costs": { "price": 0.01 } }]);
    house.tell(id, &outcome).await["receipts"][0].clone()
}

async fn change(house: &House, id: &str, what: &str) {
    house
        .post_text(&format!("/v1/experiments/{id}/{what}"), "")
        .await
        .expect(200);
}

/// Decides and tells until exploration is over: the second action gives the reward, and costs as much.
async fn explore(house: &House, id: &str) {
    while house.state(id).await["kind"] == "explore" {
        let decided = house.decide(id, 10_000).await;
        let decided = decided["decisions"].as_array().unwrap().iter();
        let costs = house.state(id).await["limits"].as_array().unwrap().len();
        let told = decided.map(|one| {
            let value = &one["action"];
            let costs = vec![value; costs];
            json!({ "round": one["round"], "reward": value, "costs": costs })
        });
        house.tell(id, &told.collect()).await;
    }
}

#[tokio::test]
async fn a_flag_is_a_decision_that_its_user_keeps_in_every_state() {
    let mut house = House::new();
    house.create("e", SHORT).await;
    let mut kept = BTreeMap::new();
    // The first epoch has one round.
    let first = evaluated(&house, "e", "ann").await;
    assert_eq!(first["reason"], "SPLIT");
    assert_eq!(first["value"], first["variant"]);
    assert_eq!(
        first["metadata"],
        json!({ "round": 1, "epoch": 0, "probability": 1.0 })
    );
    kept.insert("ann", first);
    // It waits, and the spec holds others back.
    let ask = json!({ "n": 1, "request_key": "zoe" });
    house
        .post("/v1/experiments/e/decisions", &ask)
        .await
        .refused(409, "waiting");
    let waiting = evaluated(&house, "e", "bob").await;
    assert_eq!(
        waiting["metadata"],
        json!({ "serial": 1, "epoch": 0, "probability": 1.0, "overtime": true })
    );
    kept.insert("bob", waiting);
    assert_eq!(tell(&house, "e", "ann").await, "recorded");
    kept.insert("cid", evaluated(&house, "e", "cid").await);
    assert_eq!(tell(&house, "e", "cid").await, "recorded");
    // The fifth epoch is the first with two rounds.
    play(&house, "e", 2).await;
    kept.insert("dan", evaluated(&house, "e", "dan").await);
    assert_eq!(kept["dan"]["metadata"]["round"], 5);
    // Paused, it gives nobody anything, and to the user who came meanwhile the next round afterwards.
    change(&house, "e", "pause").await;
    for user in ["eve", "fay", "eve"] {
        let paused = evaluated(&house, "e", user).await;
        assert!(paused.get("value").is_none(), "{paused}");
        assert_eq!(paused["reason"], "DISABLED");
        assert_eq!(
            paused["metadata"],
            json!({ "epoch": 4, "recommendation": false, "status": "paused" })
        );
    }
    let nobody = json!([{ "request_key": "eve", "reward": 1, "costs": [0] }]);
    house
        .post("/v1/experiments/e/outcomes", &nobody)
        .await
        .refused(404, "no_such_round");
    assert_eq!(evaluated(&house, "e", "dan").await, kept["dan"]);
    equal(&house, "e").await;
    change(&house, "e", "resume").await;
    kept.insert("eve", evaluated(&house, "e", "eve").await);
    assert_eq!(kept["eve"]["metadata"]["round"], 6);
    for user in ["dan", "eve"] {
        assert_eq!(tell(&house, "e", user).await, "recorded");
    }
    assert_eq!(house.state("e").await["epoch"], 5);
    for what in ["", "pause", "resume", "close"] {
        if !what.is_empty() {
            change(&house, "e", what).await;
        }
        for (user, flag) in &kept {
            assert_eq!(&evaluated(&house, "e", user).await, flag, "{user} {what}");
        }
        house.restart();
    }
    let audited = equal(&house, "e").await;
    assert_eq!((audited.decisions, audited.overtime), (6, 1));
}

/// Known users keep the value of a paused experiment on the page that polls, and its tag changes with the first decision.
#[tokio::test]
async fn a_pause_is_seen_by_those_who_poll() {
    let house = House::new();
    for id in ["known", "new"] {
        house.create(id, SHORT).await;
    }
    evaluated(&house, "known", "ann").await;
    for id in ["known", "new"] {
        change(&house, id, "pause").await;
    }
    let paused = house.post(BULK, &context("ann")).await;
    let flags = paused.expect(200)["flags"].clone();
    let reasons = [&flags[0]["reason"], &flags[1]["reason"]];
    assert_eq!(reasons, [&json!("SPLIT"), &json!("DISABLED")]);
    let tag = paused.headers["etag"].to_str().unwrap();
    let ask = async || keyed(&house, BULK, ("if-none-match", tag.to_owned()), &[]).await;
    assert_eq!(ask().await.status, 304);
    change(&house, "new", "resume").await;
    let resumed = ask().await.expect(200)["flags"].clone();
    assert_eq!(resumed[0], flags[0]);
    assert_eq!(resumed[1]["metadata"]["round"], 1, "{resumed}");
}

/// Only flags are answered while an experiment holds others back: overtime of anyone else is found, and of a flag in the place
/// of a round.
#[tokio::test]
async fn the_audit_takes_a_flags_overtime_and_no_others() {
    let house = House::new();
    house.create("e", SHORT).await;
    evaluated(&house, "e", "ann").await;
    evaluated(&house, "e", "bob").await;
    equal(&house, "e").await;
    let log = house.get("/v1/experiments/e/log/download").await.text();
    let keyless = log.replace("\"bob\"", "null");
    let round = log.lines().find(|line| line.contains("\"ann\"")).unwrap();
    let roundless = log.replace(&format!("{round}\n"), "");
    for (forged, found) in [
        (keyless, "held, as the spec says"),
        (roundless, "rounds, as the epoch goes on"),
    ] {
        assert_ne!(forged, log);
        let mut forged = Log::text(Box::new(Cursor::new(forged)), None);
        match audit(&mut forged, None).unwrap() {
            Verdict::Different(_, difference) => {
                let said = difference.to_string();
                assert!(said.contains(found), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Only a damaged store has such rows: whoever asks is told so, and others go on.
#[tokio::test]
async fn a_lease_without_a_known_action_is_an_error_and_stops_nobody_else() {
    let house = House::new();
    let held_back = short_with("holdback = { share = 0.5, action = 'left' }");
    for (id, spec) in [("whole", SHORT), ("damaged", &held_back)] {
        house.create(id, spec).await;
    }
    let whole = evaluated(&house, "whole", "ann").await;
    let mut users = BTreeMap::new();
    for number in 0..20 {
        let user = format!("user-{number}");
        let flag = evaluated(&house, "damaged", &user).await;
        let kind = ["round", "overtime", "holdback"];
        let kind = kind
            .into_iter()
            .find(|kind| flag["metadata"][kind] != json!(null));
        users.entry(kind.unwrap()).or_insert(user);
    }
    assert_eq!(users.len(), 3, "{users:?}");
    // Before and after the epoch's end, from where on its labels are read again.
    for ended in [false, true] {
        if ended {
            let told = json!([{ "round": 1, "reward": 1, "costs": [0] }]);
            house.tell("damaged", &told).await;
        }
        for actions in ["x''", "x'09'"] {
            let file = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
            let damage =
                format!("UPDATE leases SET actions = {actions} WHERE request_key != 'ann'");
            file.execute(&damage, []).unwrap();
            for (kind, user) in &users {
                let answers = [
                    house.post(&format!("{BULK}/damaged"), &context(user)).await,
                    house
                        .post(
                            "/v1/experiments/damaged/decisions",
                            &json!({ "n": 1, "request_key": user }),
                        )
                        .await,
                ];
                let statuses = answers.map(|answer| answer.status.as_u16());
                assert_eq!(statuses, [503, 503], "{kind} {actions} {ended}");
            }
            assert_eq!(evaluated(&house, "whole", "ann").await, whole);
        }
    }
}

#[tokio::test]
async fn an_experiment_that_is_over_recommends_by_its_last_strategy_and_stores_nothing() {
    let mut house = House::new();
    house.create("mixed", MIXED).await;
    explore(&house, "mixed").await;
    let known = evaluated(&house, "mixed", "ann").await;
    change(&house, "mixed", "close").await;
    let certificate = house.get("/v1/experiments/mixed/certificate").await.json();
    let share = certificate["recommendation"]["strategy"][1]
        .as_f64()
        .unwrap();
    assert!((0.1..0.9).contains(&share), "{share}");
    let mut right = 0;
    for number in 0..400 {
        let user = format!("user-{number}");
        let flag = evaluated(&house, "mixed", &user).await;
        assert_eq!(flag["reason"], "SPLIT");
        assert_eq!(flag["metadata"]["recommendation"], true);
        assert_eq!(flag["metadata"]["status"], "closed");
        right += u64::from(flag["value"] == "right");
    }
    // Hoeffding: a fair share is this far off with probability below 1e-6.
    assert!((right as f64 / 400.0 - share).abs() < 0.14, "{right}");
    // A function of id and key alone: these were computed by another program (SHA-256 of "mixed\0user-0" ..).
    let drawn = async |user: &str| evaluated(&house, "mixed", user).await["value"].clone();
    let by_hand = [("user-0", UNIFORMS[0]), ("user-1", UNIFORMS[1])];
    for (user, uniform) in by_hand {
        let expected = if uniform < 1.0 - share {
            "left"
        } else {
            "right"
        };
        assert_eq!(drawn(user).await, expected, "{user}");
    }
    house.restart();
    assert_eq!(evaluated(&house, "mixed", "ann").await, known);
    let audited = equal(&house, "mixed").await;
    assert_eq!(audited.overtime, 0);
    // Whom it has given nothing, nothing can be told of.
    let told = json!([{ "request_key": "user-0", "reward": 1, "costs": [0] }]);
    house
        .post("/v1/experiments/mixed/outcomes", &told)
        .await
        .refused(409, "closed");
}

/// `int(sha256(b"mixed\0user-0").hexdigest()[:16], 16) >> 11` times 2^-53 in Python, and of the next user.
const UNIFORMS: [f64; 2] = [0.4733818022493007, 0.043720674844179075];

#[tokio::test]
async fn a_committed_experiment_goes_on_and_then_recommends_its_action_to_everyone() {
    let house = House::new();
    let spec = "policy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b']\n";
    house.create("sure", spec).await;
    while house.state("sure").await["kind"] != "commit" {
        explore(&house, "sure").await;
    }
    let flag = evaluated(&house, "sure", "ann").await;
    assert_eq!(flag["value"], "b");
    assert_eq!(flag["metadata"]["probability"], 1.0);
    assert!(flag["metadata"]["round"].is_u64(), "{flag}");
    change(&house, "sure", "close").await;
    let flag = evaluated(&house, "sure", "bob").await;
    assert_eq!(
        (&flag["value"], &flag["reason"]),
        (&json!("b"), &json!("STATIC"))
    );
    assert_eq!(flag["metadata"]["recommendation"], true);
}

#[tokio::test]
async fn what_ends_without_knowing_anything_leaves_the_value_to_the_application() {
    let house = House::new();
    house
        .create("short", &SHORT.replace("horizon = 64", "horizon = 1"))
        .await;
    evaluated(&house, "short", "ann").await;
    assert_eq!(tell(&house, "short", "ann").await, "recorded");
    assert_eq!(house.state("short").await["status"], "done");
    let flag = evaluated(&house, "short", "bob").await;
    assert!(flag.get("value").is_none(), "{flag}");
    assert_eq!(flag["reason"], "DISABLED");
    assert_eq!(
        flag["metadata"],
        json!({ "epoch": 0, "recommendation": false, "status": "done" })
    );
    // Known users keep theirs, and their outcomes are known.
    assert_eq!(
        evaluated(&house, "short", "ann").await["metadata"]["round"],
        1
    );
    assert_eq!(tell(&house, "short", "ann").await, "repeated");
}

#[tokio::test]
async fn errors_are_the_protocols() {
    let house = House::new();
    house.create("e", SHORT).await;
    let long = "x".repeat(129);
    for (body, code) in [
        ("{", "PARSE_ERROR"),
        ("", "PARSE_ERROR"),
        ("{}", "TARGETING_KEY_MISSING"),
        (r#"{"context": null}"#, "TARGETING_KEY_MISSING"),
        (r#"{"context": {"plan": "x"}}"#, "TARGETING_KEY_MISSING"),
        (
            r#"{"context": {"targetingKey": ""}}"#,
            "TARGETING_KEY_MISSING",
        ),
        (
            r#"{"context": {"targetingKey": null}}"#,
            "TARGETING_KEY_MISSING",
        ),
        (r#"{"context": {"targetingKey": 7}}"#, "INVALID_CONTEXT"),
        (
            r#"{"context": {"targetingKey": "a\u0000b"}}"#,
            "INVALID_CONTEXT",
        ),
        (r#"{"context": ["a"]}"#, "INVALID_CONTEXT"),
        (r#"["a"]"#, "INVALID_CONTEXT"),
        (
            &format!(r#"{{"context": {{"targetingKey": "{long}"}}}}"#),
            "INVALID_CONTEXT",
        ),
    ] {
        let reply = house.post_text(&format!("{BULK}/e"), body).await;
        assert_failed(&reply, 400, code, Some("e"));
        assert_failed(&house.post_text(BULK, body).await, 400, code, None);
    }
    for id in ["none", "No%20Such", "%00"] {
        let reply = house.post(&format!("{BULK}/{id}"), &context("ann")).await;
        let key = reply.json()["key"].as_str().unwrap().to_owned();
        assert_failed(&reply, 404, "FLAG_NOT_FOUND", Some(&key));
    }
    // A key under which several rounds were asked for is not a user's.
    let ask = json!({ "n": 3, "request_key": "batch" });
    house
        .post("/v1/experiments/e/decisions", &ask)
        .await
        .expect(200);
    let reply = house.post(&format!("{BULK}/e"), &context("batch")).await;
    assert_failed(&reply, 400, "GENERAL", Some("e"));
    let request = Request::post(format!("{BULK}/e")).header("content-type", "text/plain");
    let reply = house.send(request.body("{}".into()).unwrap()).await;
    assert_failed(&reply, 400, "PARSE_ERROR", Some("e"));
    // A browser's page gets the same: programs read it.
    let request = Request::post(format!("{BULK}/none"))
        .header("content-type", "application/json")
        .header("accept", "text/html");
    let reply = house
        .send(request.body(context("a").to_string().into()).unwrap())
        .await;
    assert_failed(&reply, 404, "FLAG_NOT_FOUND", Some("none"));
}

async fn keyed(house: &House, path: &str, header: (&str, String), also: &[(&str, &str)]) -> Reply {
    let mut request = Request::post(path)
        .header("content-type", "application/json")
        .header(header.0, header.1);
    for (name, value) in also {
        request = request.header(*name, *value);
    }
    let body = Body::from(context("ann").to_string());
    house.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn the_api_key_chooses_the_flags_and_its_role_must_decide() {
    let house = House::new();
    for id in ["one", "two", "three"] {
        house.create(id, SHORT).await;
    }
    set_key(&house, "boss", Role::Admin, None);
    set_key(&house, "eye", Role::Read, None);
    scope_key(&house, "page", Role::Decide, &["two", "three", "later"]);
    house.app.state.access.forget();
    house
        .post(BULK, &context("ann"))
        .await
        .refused(401, "no_key");
    let plain = |name: &str| ("x-api-key", token(name));
    let bearer = |name: &str| ("authorization", format!("Bearer {}", token(name)));
    for path in [BULK.to_owned(), format!("{BULK}/two")] {
        let refused = keyed(&house, &path, plain("eye"), &[]).await;
        refused.refused(403, "wrong_role");
        let wrong = keyed(&house, &path, ("x-api-key", "debora_x".into()), &[]).await;
        wrong.refused(401, "no_key");
        keyed(&house, &path, plain("page"), &[]).await.expect(200);
        keyed(&house, &path, bearer("page"), &[]).await.expect(200);
    }
    let hidden = keyed(&house, &format!("{BULK}/one"), plain("page"), &[]).await;
    assert_failed(&hidden, 404, "FLAG_NOT_FOUND", Some("one"));
    let flags = keyed(&house, BULK, bearer("page"), &[]).await.expect(200);
    let flags = flags["flags"].as_array().unwrap();
    for (flag, id) in flags.iter().zip(["two", "three"]) {
        assert_is_flag(flag, id);
    }
    assert_eq!(flags.len(), 2);
    // It was not asked for, so it has decided nothing.
    let log = house.service.read(|store| store.experiment("one")).unwrap();
    assert_eq!(log.unwrap().1.rounds(), 0);
}

#[tokio::test]
async fn all_flags_have_a_tag_and_are_not_sent_again_while_it_holds() {
    let mut house = House::new();
    for id in ["one", "two"] {
        house.create(id, SHORT).await;
    }
    let ask = async |house: &House, tag: &str| {
        keyed(house, BULK, ("if-none-match", tag.to_owned()), &[]).await
    };
    let first = house.post(BULK, &context("ann")).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    house.restart();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}")] {
        let same = ask(&house, &known).await;
        assert_eq!(
            (same.status.as_u16(), same.bytes.len()),
            (304, 0),
            "{known}"
        );
        assert_eq!(same.headers["etag"], tag.as_str());
    }
    let again = ask(&house, "\"x\"").await;
    assert_eq!((again.status.as_u16(), &again.bytes), (200, &first.bytes));
    // A flag of its own for another user, and a new experiment, change the answer.
    house.create("three", SHORT).await;
    let more = ask(&house, &tag).await;
    assert_eq!(more.expect(200)["flags"].as_array().unwrap().len(), 3);
    assert_ne!(more.headers["etag"], tag.as_str());
    // One flag that fails leaves the others.
    let batch = json!({ "n": 2, "request_key": "ann" });
    house.create("four", SHORT).await;
    house
        .post("/v1/experiments/four/decisions", &batch)
        .await
        .expect(200);
    let flags = ask(&house, &tag).await.expect(200)["flags"].clone();
    assert_is_flag(&flags[0], "one");
    assert_eq!(
        (&flags[3]["key"], &flags[3]["errorCode"]),
        (&json!("four"), &json!("GENERAL"))
    );
}

#[tokio::test]
async fn more_flags_than_a_page_can_need_are_refused_with_the_remedy() {
    let house = House::new();
    for number in 0..101 {
        house.create(&format!("e-{number}"), SHORT).await;
    }
    let refused = house.post(BULK, &context("ann")).await;
    assert_failed(&refused, 400, "GENERAL", None);
    assert!(
        refused.text().contains("--experiment"),
        "{}",
        refused.text()
    );
    assert_eq!(house.state("e-0").await["decided"], 0);
}

#[tokio::test]
async fn outcomes_are_told_by_those_who_only_know_their_users() {
    let house = House::new();
    house
        .create("e", &short_with("on_wait = 'serve'\noutcome_wait = '1s'"))
        .await;
    let path = "/v1/experiments/e/outcomes";
    evaluated(&house, "e", "ann").await;
    evaluated(&house, "e", "bob").await;
    let outcome =
        |key: &str, reward: f64| json!({ "request_key": key, "reward": reward, "costs": [0.01] });
    let told = house
        .tell(
            "e",
            &json!([outcome("ann", 1.0), outcome("ann", 1.0), outcome("ann", 0.0), outcome("bob", 1.0),
                outcome("nobody", 1.0), { "round": 1, "reward": 1, "costs": [0.01] }]),
        )
        .await;
    assert_eq!(
        told["receipts"],
        json!([
            "recorded", "repeated", "conflict", "overtime", "unknown", "repeated"
        ])
    );
    house
        .post(path, &json!([outcome("nobody", 1.0)]))
        .await
        .refused(404, "no_such_round");
    play(&house, "e", 3).await;
    // The fifth epoch has two rounds, given to one request.
    let ask = json!({ "n": 5, "request_key": "batch" });
    let given = house.post("/v1/experiments/e/decisions", &ask).await;
    assert_eq!(given.expect(200)["decisions"].as_array().unwrap().len(), 2);
    let indexed = |index: u64| json!({ "request_key": "batch", "index": index, "reward": 1, "costs": [0.01] });
    let missing = house.post(path, &json!([outcome("batch", 1.0)])).await;
    let said = missing.refused(422, "index")["message"].to_string();
    assert!(
        said.contains("2 decisions") && said.contains("index"),
        "{said}"
    );
    // All or nothing: the first of these would fit.
    house
        .post(path, &json!([indexed(0), indexed(2)]))
        .await
        .refused(422, "index");
    for wrong in [
        json!([{ "request_key": "ann", "round": 1, "reward": 1, "costs": [0.01] }]),
        json!([{ "index": 0, "reward": 1, "costs": [0.01] }]),
        json!([{ "round": 1, "index": 0, "reward": 1, "costs": [0.01] }]),
    ] {
        house.post(path, &wrong).await.refused(422, "unfit");
    }
    house
        .post(path, &json!([outcome("a\u{0}b", 1.0)]))
        .await
        .refused(422, "request_key");
    assert_eq!(
        house.tell("e", &json!([indexed(1)])).await["counts"]["recorded"],
        1
    );
    house.wait(60_000);
    house.service.tick().await.unwrap();
    house.wait(60_000);
    house.service.tick().await.unwrap();
    assert_eq!(
        house.tell("e", &json!([indexed(0)])).await["receipts"],
        json!(["late"])
    );
    let audited = equal(&house, "e").await;
    assert_eq!((audited.outcomes, audited.imputed), (6, 1));
}

#[tokio::test]
async fn an_idempotency_key_is_a_request_key() {
    let house = House::new();
    house.create("e", &short_with("on_wait = 'serve'")).await;
    let ask = async |header: &[&str], body: Value| {
        let mut request =
            Request::post("/v1/experiments/e/decisions").header("content-type", "application/json");
        for value in header {
            request = request.header("Idempotency-Key", *value);
        }
        house
            .send(request.body(body.to_string().into()).unwrap())
            .await
    };
    let first = ask(&["web-1"], json!({ "n": 1 })).await.expect(200);
    let again = [
        ask(&["\"web-1\""], json!({ "n": 1 })).await,
        ask(&["web-1"], json!({ "n": 1, "request_key": "web-1" })).await,
        ask(&[], json!({ "n": 1, "request_key": "web-1" })).await,
    ];
    for again in again {
        assert_eq!(again.expect(200), first);
    }
    let both = ask(&["web-1"], json!({ "n": 1, "request_key": "web-2" })).await;
    let said = both.refused(422, "request_key")["message"].to_string();
    assert!(said.contains("web-1") && said.contains("web-2"), "{said}");
    // The draft's escapes, and what is no string of its.
    let escaped = ask(&[r#""a\"b\\c""#], json!({ "n": 1 })).await.expect(200);
    let body = json!({ "n": 1, "request_key": r#"a"b\c"# });
    assert_eq!(ask(&[], body).await.expect(200), escaped);
    for wrong in [
        &[r#""a"#][..],
        &[r#""a"b""#],
        &[r#""a\x""#],
        &[r#""a\""#],
        &["a", "b"],
        &[""],
    ] {
        ask(wrong, json!({ "n": 1 }))
            .await
            .refused(422, "request_key");
    }
}
