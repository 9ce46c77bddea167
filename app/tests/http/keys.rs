//! Sessions, scopes, who asked, allocation keys, and clients that have seen more than the store.

use std::io::Cursor;

use axum::body::Body;
use axum::http::Request;
use debora_cli::audit::{Audited, Log, Verdict, audit};
use debora_cli::hex;
use debora_cli::service::http::openapi;
use debora_cli::store::{ApiKey, Purpose, Role, Status};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::access::{operations, set_key, token};
use crate::{House, KEY, Reply, SHORT, outcomes, short_with};

const HOUR: i64 = 3_600_000;

/// A request with these headers; a body is JSON unless the headers say otherwise.
async fn send(
    house: &House,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl ToString,
) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    if headers.iter().all(|(name, _)| *name != "content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    house
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

pub async fn with_key(house: &House, method: &str, path: &str, name: &str, body: Value) -> Reply {
    let bearer = format!("Bearer {}", token(name));
    send(house, method, path, &[("authorization", &bearer)], body).await
}

async fn with_cookie(house: &House, method: &str, path: &str, cookie: &str) -> Reply {
    send(house, method, path, &[("cookie", cookie)], "").await
}

/// Logs in; what the browser is told to keep.
async fn log_in(house: &House, name: &str, headers: &[(&str, &str)]) -> String {
    let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
    all.extend_from_slice(headers);
    let entered = send(
        house,
        "POST",
        "/login",
        &all,
        format!("key={}", token(name)),
    )
    .await;
    assert_eq!(entered.status, 303, "{}", entered.text());
    assert_eq!(entered.headers["cache-control"], "no-store");
    entered.headers["set-cookie"].to_str().unwrap().to_owned()
}

fn pair(cookie: &str) -> &str {
    cookie.split(';').next().unwrap()
}

/// Whether a page is shown; otherwise it leads to the login.
async fn is_shown(house: &House, cookie: &str) -> bool {
    match with_cookie(house, "GET", "/", cookie).await {
        reply if reply.status == 200 => true,
        reply => {
            assert_eq!(reply.headers["location"], "/login");
            false
        }
    }
}

pub(crate) fn scope_key(house: &House, name: &str, role: Role, experiments: &[&str]) {
    let mut store = house.location().open(Purpose::Write).unwrap();
    let key = ApiKey {
        name: name.into(),
        role,
        hash: hex::encode(&Sha256::digest(token(name))),
        created_at: 0,
        revoked_at: None,
        experiments: Some(experiments.iter().map(|id| (*id).to_owned()).collect()),
        last_used_at: None,
    };
    store.begin().unwrap();
    store.set_key(&key).unwrap();
    store.commit().unwrap();
}

/// What an audit recomputes of a log, all of which must be equal.
fn audited(log: String) -> Audited {
    let mut log = Log::text(Box::new(Cursor::new(log)), None);
    match audit(&mut log, None).unwrap() {
        Verdict::Equal(audited) => audited,
        different => panic!("{different:?}"),
    }
}

#[tokio::test]
async fn a_session_is_a_token_of_its_own_and_log_out_ends_it() {
    let mut house = House::new();
    set_key(&house, "boss", Role::Admin, None);
    let cookie = log_in(&house, "boss", &[]).await;
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let boss = pair(&cookie);
    let drawn = boss.split_once('=').unwrap().1;
    assert!(
        !cookie.contains(&token("boss")) && drawn.len() == 64,
        "{cookie}"
    );
    assert_ne!(pair(&log_in(&house, "boss", &[]).await), boss);
    assert!(is_shown(&house, boss).await);
    with_cookie(&house, "GET", "/v1/experiments", boss)
        .await
        .expect(200);
    // The store has a hash of it.
    let hash = hex::encode(&Sha256::digest(drawn));
    let session = house
        .service
        .read(move |store| store.session(&hash))
        .unwrap()
        .unwrap();
    assert_eq!(session.key_name, "boss");

    // A token is not a key, and a key is not a token.
    let bearer = format!("Bearer {drawn}");
    send(
        &house,
        "GET",
        "/v1/experiments",
        &[("authorization", &bearer)],
        "",
    )
    .await
    .refused(401, "no_key");
    for name in ["debora_session", "__Host-debora_session", "debora_key"] {
        let cookie = format!("{name}={}", token("boss"));
        with_cookie(&house, "GET", "/v1/experiments", &cookie)
            .await
            .refused(401, "no_key");
    }

    // It is the store's, so that any node answers, and a restart logs nobody out.
    house.restart();
    assert!(is_shown(&house, boss).await);
    let left = with_cookie(&house, "POST", "/logout", boss).await;
    assert!(
        left.headers["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert!(!is_shown(&house, boss).await);
    with_cookie(&house, "GET", "/v1/experiments", boss)
        .await
        .refused(401, "no_key");
    assert_eq!(
        with_cookie(&house, "POST", "/logout", boss).await.status,
        303
    );
}

#[tokio::test]
async fn a_session_ends_with_its_time_and_with_its_key() {
    let house = House::new();
    set_key(&house, "boss", Role::Admin, None);
    let cookie = log_in(&house, "boss", &[]).await;
    let boss = pair(&cookie);
    house.wait(12 * HOUR - 1);
    assert!(is_shown(&house, boss).await);
    house.wait(1);
    assert!(!is_shown(&house, boss).await);
    // The next log-in sweeps it out.
    let hash = hex::encode(&Sha256::digest(boss.split_once('=').unwrap().1));
    let stored = || {
        let hash = hash.clone();
        house
            .service
            .read(move |store| store.session(&hash))
            .unwrap()
    };
    assert!(stored().is_some());
    let again = log_in(&house, "boss", &[]).await;
    assert!(stored().is_none());
    assert!(is_shown(&house, pair(&again)).await);
    set_key(&house, "boss", Role::Admin, Some(1));
    house.wait(2_000);
    assert!(!is_shown(&house, pair(&again)).await);
}

#[tokio::test]
async fn a_key_has_a_hundred_sessions_and_the_oldest_ends() {
    let house = House::new();
    for name in ["ann", "bob"] {
        set_key(&house, name, Role::Read, None);
    }
    house.wait(2_000);
    let others = log_in(&house, "bob", &[]).await;
    let mut cookies = Vec::new();
    for _ in 0..101 {
        house.wait(1);
        cookies.push(log_in(&house, "ann", &[]).await);
    }
    for (cookie, shown) in [
        (&cookies[0], false),
        (&cookies[1], true),
        (&cookies[100], true),
        (&others, true),
    ] {
        assert_eq!(is_shown(&house, pair(cookie)).await, shown);
    }
}

#[tokio::test]
async fn a_cookie_travels_by_tls_alone_wherever_tls_is_known() {
    let house = House::new();
    set_key(&house, "boss", Role::Admin, None);
    for (name, value) in [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-proto", "HTTPS, http"),
        ("forwarded", "for=192.0.2.60;proto=https;by=203.0.113.43"),
        (
            "forwarded",
            "for=192.0.2.60; Proto=\"https\", for=10.0.0.1;proto=http",
        ),
        ("x-forwarded-ssl", "on"),
        ("front-end-https", "on"),
        ("x-url-scheme", "https"),
        ("x-scheme", "https"),
        ("x-forwarded-scheme", "https"),
        ("cloudfront-forwarded-proto", "https"),
        ("cf-visitor", "{\"scheme\":\"https\"}"),
        ("cf-visitor", "{\"scheme\": \"https\"}"),
        ("origin", "https://trials.example"),
    ] {
        let headers = [(name, value), ("host", "trials.example")];
        let cookie = log_in(&house, "boss", &headers).await;
        assert!(
            cookie.starts_with("__Host-debora_session=") && cookie.contains("; Secure"),
            "{name}: {value}: {cookie}"
        );
        let shown = [
            ("cookie", pair(&cookie)),
            (name, value),
            ("host", "trials.example"),
        ];
        assert_eq!(send(&house, "GET", "/", &shown, "").await.status, 200);
        // A proxy need not say on every request how it was reached.
        assert!(is_shown(&house, pair(&cookie)).await);
    }
    for (name, value) in [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-proto", "http, https"),
        ("forwarded", "for=192.0.2.60;proto=http, proto=https"),
        ("x-forwarded-ssl", "off"),
        ("cf-visitor", "{\"scheme\":\"http\"}"),
        ("origin", "http://localhost:8080"),
    ] {
        let headers = [(name, value), ("host", "localhost:8080")];
        let cookie = log_in(&house, "boss", &headers).await;
        assert!(
            cookie.starts_with("debora_session=") && !cookie.contains("Secure"),
            "{name}: {value}: {cookie}"
        );
        assert!(is_shown(&house, pair(&cookie)).await);
        // Others can plant a cookie without the prefix, over http or from another name of the site.
        let tls = [("cookie", pair(&cookie)), ("x-forwarded-proto", "https")];
        assert_eq!(send(&house, "GET", "/", &tls, "").await.status, 303);
    }
}

#[tokio::test]
async fn no_cache_keeps_what_may_hold_a_key() {
    let house = House::new();
    house.create("e", SHORT).await;
    house.decide("e", 1).await;
    for path in [
        "/v1/experiments",
        "/v1/experiments/e",
        "/v1/experiments/e/log",
        "/v1/experiments/e/state",
        "/v1/experiments/e/certificate",
        "/v1/experiments/none",
        "/metrics",
        "/",
        "/login",
        "/experiments/e",
        "/experiments/e/figures/strategy.csv",
        "/experiments/e/report.html",
    ] {
        let reply = house.get(path).await;
        assert_eq!(
            reply.headers.get_all("cache-control").iter().count(),
            1,
            "{path}"
        );
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
    }
    let decided = house
        .post("/v1/experiments/e/decisions", &json!({ "n": 1 }))
        .await;
    assert_eq!(decided.headers["cache-control"], "no-store");
    assert_eq!(
        house.get("/assets/debora.css").await.headers["cache-control"],
        "public, max-age=31536000, immutable"
    );
}

/// Every documented operation and every page, asked by a key for another experiment: what is there looks like what is not.
#[tokio::test]
async fn a_key_for_another_experiment_cannot_tell_whether_one_is_there() {
    let house = House::new();
    house.create("one-that-is", SHORT).await;
    for role in [Role::Read, Role::Decide, Role::Admin] {
        scope_key(&house, role.name(), role, &["own"]);
    }
    house.wait(2_000);
    let documented = operations()
        .into_iter()
        .map(|(method, path, _)| (method, path));
    let pages = [
        ("GET", "/experiments/{id}"),
        ("GET", "/experiments/{id}/figures/strategy.csv"),
        ("GET", "/experiments/{id}/report.html"),
        ("POST", "/experiments/{id}/pause"),
        ("POST", "/experiments/{id}/resume"),
        ("POST", "/experiments/{id}/close"),
    ];
    let pages = pages.map(|(method, path)| (method.to_owned(), path.to_owned()));
    let mut asked = 0;
    for (method, path) in documented.chain(pages) {
        if !path.contains("{id}") {
            continue;
        }
        asked += 1;
        for role in ["read", "decide", "admin"] {
            let ask = async |id: &str| {
                let reply =
                    with_key(&house, &method, &path.replace("{id}", id), role, json!({})).await;
                (reply.status.as_u16(), reply.text().replace(id, "ID"))
            };
            let there = ask("one-that-is").await;
            assert_eq!(there, ask("one-that-is-not").await, "{method} {path}");
            // A role that is too low is refused before anything is looked for.
            let refused = there.0 == 404 || (role != "admin" && there.0 == 403);
            assert!(refused, "{method} {path} as {role}: {there:?}");
        }
    }
    assert!(asked >= 14, "an operation was lost: {asked}");
    let row = house.service.read(|store| store.experiment("one-that-is"));
    let (_, progress) = row.unwrap().unwrap();
    assert_eq!(
        (progress.rounds(), progress.status),
        (0, Status::Running),
        "it was not touched"
    );
}

#[tokio::test]
async fn a_key_for_some_experiments_sees_and_makes_only_these() {
    let house = House::new();
    house.create("e", SHORT).await;
    house
        .create("own", &SHORT.replace("short epochs", "of its own"))
        .await;
    scope_key(&house, "scoped", Role::Admin, &["own", "own-2"]);
    set_key(&house, "all", Role::Read, None);
    house.wait(2_000);
    let list = with_key(&house, "GET", "/v1/experiments", "scoped", json!({}))
        .await
        .expect(200);
    let ids: Vec<&Value> = list["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["own"]);
    let page = with_key(&house, "GET", "/", "scoped", json!({}))
        .await
        .text();
    assert!(
        page.contains("of its own") && !page.contains("short epochs"),
        "{page}"
    );
    let decided = with_key(
        &house,
        "POST",
        "/v1/experiments/own/decisions",
        "scoped",
        json!({ "n": 1 }),
    )
    .await;
    decided.expect(200);

    for id in [json!("e"), json!("other"), Value::Null] {
        let body = json!({ "spec": SHORT, "id": id, "blind": true });
        let refused = with_key(&house, "POST", "/v1/experiments", "scoped", body).await;
        assert!(
            refused.refused(403, "out_of_scope")["message"]
                .as_str()
                .unwrap()
                .contains("\"own-2\"")
        );
    }
    let cookie = log_in(&house, "scoped", &[]).await;
    let form = [
        ("cookie", pair(&cookie)),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let fields = serde_urlencoded::to_string([
        ("spec", SHORT),
        ("id", "other"),
        ("key", ""),
        ("blind", "yes"),
    ])
    .unwrap();
    let page = send(&house, "POST", "/new", &form, fields).await;
    assert!(
        page.status == 422 && page.text().contains("is for the experiments"),
        "{}",
        page.text()
    );
    assert!(
        house
            .service
            .read(|store| store.experiment("other"))
            .unwrap()
            .is_none()
    );
    let body = json!({ "spec": SHORT, "id": "own-2", "blind": true });
    with_key(&house, "POST", "/v1/experiments", "scoped", body)
        .await
        .expect(201);

    let refused = with_key(&house, "GET", "/metrics", "scoped", json!({})).await;
    let refused = refused.refused(403, "out_of_scope");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("use a key for all experiments") && !message.contains("ids"),
        "{message}"
    );
    assert_eq!(
        with_key(&house, "GET", "/metrics", "all", json!({}))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn rows_and_log_lines_name_the_key_that_asked_and_told() {
    let house = House::new();
    let spec = short_with("on_wait = \"serve\"\noutcome_wait = \"1m\"");
    house.create("e", &spec).await;
    let first = house.decide("e", 1).await;
    house.tell("e", &outcomes(&first, 1.0, 0.01)).await;
    for name in ["router", "teller"] {
        set_key(&house, name, Role::Decide, None);
    }
    house.wait(2_000);
    let (ask, tell) = ("/v1/experiments/e/decisions", "/v1/experiments/e/outcomes");
    let second = with_key(
        &house,
        "POST",
        ask,
        "router",
        json!({ "n": 1, "request_key": "k" }),
    )
    .await
    .expect(200);
    // Asked again by another key it stays the first one's.
    with_key(
        &house,
        "POST",
        ask,
        "teller",
        json!({ "n": 1, "request_key": "k" }),
    )
    .await
    .expect(200);
    with_key(&house, "POST", tell, "teller", outcomes(&second, 0.5, 0.01))
        .await
        .expect(200);
    with_key(&house, "POST", tell, "router", outcomes(&second, 0.5, 0.01))
        .await
        .expect(200);
    let third = with_key(&house, "POST", ask, "router", json!({ "n": 1 }))
        .await
        .expect(200);
    let overtime = with_key(&house, "POST", ask, "teller", json!({ "n": 1 }))
        .await
        .expect(200);
    let outcome =
        json!([{ "epoch": overtime["epoch"], "overtime": 1, "reward": 0.5, "costs": [0.01] }]);
    with_key(&house, "POST", tell, "router", outcome)
        .await
        .expect(200);
    for _ in 0..1_000 {
        house.wait(1_000);
        house.service.tick().await.unwrap();
        let imputed = house
            .service
            .read(|store| store.experiment("e"))
            .unwrap()
            .unwrap()
            .1;
        if imputed.imputed.iter().sum::<u64>() == 1 {
            break;
        }
    }
    let late = with_key(&house, "POST", tell, "teller", outcomes(&third, 0.5, 0.01))
        .await
        .expect(200);
    assert_eq!(late["counts"]["late"], 1);

    let log = with_key(&house, "GET", "/v1/experiments/e/log", "router", json!({}))
        .await
        .text();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let actors: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["type"] != "event")
        .filter_map(|line| Some((line["type"].as_str()?, line.get("actor")?.as_str()?)))
        .collect();
    assert_eq!(
        actors,
        [
            ("decisions", "loopback"),
            ("outcome", "loopback"),
            ("decisions", "router"),
            ("outcome", "teller"),
            ("decisions", "router"),
            ("overtime", "teller"),
            ("overtime_outcome", "router"),
            ("late", "teller"),
        ],
        "{log}"
    );
    // The audit reads who it was, and nothing depends on it.
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    let log = with_key(&house, "GET", "/v1/experiments/e/log", "boss", json!({})).await;
    assert!(audited(log.text()).recomputed);
    // Nobody told what was imputed.
    assert!(
        lines
            .iter()
            .any(|line| line["imputed"] == true && line.get("actor").is_none())
    );
}

#[tokio::test]
async fn a_drawn_key_has_128_random_bits() {
    let house = House::new();
    let (mut any, mut all) = (0, u128::MAX);
    // Of 256 cases (a bit always or never set) one appears by chance in 40 fair keys with probability 2.4e-10.
    for number in 0..40 {
        let id = format!("e-{number}");
        let body = json!({ "spec": SHORT, "id": id, "blind": true });
        house.post("/v1/experiments", &body).await.expect(201);
        let shown = house
            .get(&format!("/v1/experiments/{id}"))
            .await
            .expect(200);
        let key = u128::from_str_radix(shown["key"].as_str().unwrap(), 16).unwrap();
        (any, all) = (any | key, all & key);
    }
    assert_eq!((any, all), (u128::MAX, 0));
}

#[tokio::test]
async fn a_given_key_is_32_digits_and_not_a_number() {
    let house = House::new();
    let weak = format!("{:032x}", u64::MAX);
    for key in [
        json!(7),
        json!("7"),
        json!(weak),
        json!(&KEY[1..]),
        json!(format!("0x{}", &KEY[2..])),
        json!([KEY]),
    ] {
        let body = json!({ "spec": SHORT, "id": "e", "key": key, "blind": true });
        let refused = house
            .post("/v1/experiments", &body)
            .await
            .refused(422, "unfit");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("openssl rand -hex 16"), "{message}");
        // It is nearly a secret, and errors end up in logs.
        assert!(!message.contains(&KEY[2..]), "{message}");
    }
    let body = json!({ "spec": SHORT, "id": "e", "key": weak, "blind": true });
    let refused = house
        .post("/v1/experiments", &body)
        .await
        .refused(422, "unfit");
    assert!(
        refused["message"].as_str().unwrap().contains("recovered"),
        "{refused}"
    );
    for key in ["7", &weak, "another text"] {
        let fields = serde_urlencoded::to_string([
            ("spec", SHORT),
            ("id", "e"),
            ("key", key),
            ("blind", "yes"),
        ])
        .unwrap();
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let page = send(&house, "POST", "/new", &form, fields).await;
        assert!(
            page.status == 422 && page.text().contains("openssl rand -hex 16"),
            "{}",
            page.text()
        );
    }
    assert_eq!(
        house.get("/v1/experiments").await.expect(200)["experiments"],
        json!([])
    );
    house.create("e", SHORT).await;
    assert_eq!(house.get("/v1/experiments/e").await.expect(200)["key"], KEY);
    let description = openapi::text();
    assert!(description.contains("^[0-9a-fA-F]{32}$") && !description.contains("KeyShape"));
}

#[tokio::test]
async fn a_shared_key_is_revealed_when_all_that_share_it_are_over() {
    let house = House::new();
    house.create("berlin", SHORT).await;
    house.create("madrid", SHORT).await;
    let body = json!({ "spec": SHORT, "id": "alone", "blind": true });
    house.post("/v1/experiments", &body).await.expect(201);
    set_key(&house, "reader", Role::Decide, None);
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    let read = |id: &str, what: &str, name: &'static str| {
        let path = format!("/v1/experiments/{id}/{what}").leak();
        with_key(&house, "GET", path, name, json!({}))
    };
    let close = |id: &str| {
        let path = format!("/v1/experiments/{id}/close").leak();
        with_key(&house, "POST", path, "boss", json!({}))
    };
    close("berlin").await.expect(200);
    close("alone").await.expect(200);
    assert!(read("alone", "certificate", "reader").await.expect(200)["key"].is_string());

    let held = read("berlin", "certificate", "reader").await.expect(200);
    assert_eq!(
        (&held["key"], &held["salt"], &held["fingerprint"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let sentence = held["key_withheld"].as_str().unwrap();
    assert!(
        sentence.contains("all of them are over") && !sentence.contains("madrid"),
        "{sentence}"
    );
    let log = read("berlin", "log", "reader").await.text();
    let heading: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&heading["key"], &heading["salt"]),
        (&Value::Null, &Value::Null)
    );
    assert!(!audited(log).key, "it is audited as far as possible");
    for what in ["certificate", "log", "state", ""] {
        let text = read("berlin", what.trim_end_matches('/'), "reader")
            .await
            .text();
        assert!(!text.contains(KEY), "{what}: {text}");
    }
    let boss = read("berlin", "certificate", "boss").await.expect(200);
    assert_eq!(
        (&boss["key"], boss.get("key_withheld")),
        (&json!(KEY), None)
    );

    close("madrid").await.expect(200);
    for id in ["berlin", "madrid"] {
        let certificate = read(id, "certificate", "reader").await.expect(200);
        assert_eq!(
            (&certificate["key"], certificate.get("key_withheld")),
            (&json!(KEY), None)
        );
        assert!(audited(read(id, "log", "reader").await.text()).recomputed);
    }
}

/// Whoever may see one of two experiments must not learn the decisions of the other.
#[tokio::test]
async fn a_shared_key_is_shown_to_those_who_may_see_all_that_share_it() {
    let house = House::new();
    for id in ["own", "own-2", "secret"] {
        house.create(id, SHORT).await;
    }
    house
        .post("/v1/experiments/own-2/close", &json!({}))
        .await
        .expect(200);
    scope_key(&house, "part", Role::Admin, &["own", "own-2"]);
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    let paths = [
        "/v1/experiments/own",
        "/v1/experiments/own/log",
        "/v1/experiments/own-2/certificate",
    ];
    for (name, shown) in [("part", false), ("boss", true)] {
        for path in paths {
            let text = with_key(&house, "GET", path, name, json!({})).await.text();
            assert_eq!(text.contains(KEY), shown, "{name} at {path}: {text}");
        }
    }
    let close = "/v1/experiments/secret/close";
    let closed = with_key(&house, "POST", close, "boss", json!({})).await;
    closed.expect(200);
    for path in paths {
        let text = with_key(&house, "GET", path, "part", json!({}))
            .await
            .text();
        assert!(text.contains(KEY), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_client_that_has_seen_more_than_the_store_is_told_so() {
    let house = House::new();
    house.create("e", SHORT).await;
    let ask = |seen: u64, key: Value| {
        let body = json!({ "n": 1, "request_key": key, "seen": seen });
        let house = &house;
        async move { house.post("/v1/experiments/e/decisions", &body).await }
    };
    let first = ask(0, json!("a")).await.expect(200);
    house.tell("e", &outcomes(&first, 1.0, 0.01)).await;
    ask(1, json!("b")).await.expect(200);
    // As many as there are is not behind, and a repeated request is checked like others.
    ask(2, json!("b")).await.expect(200);
    for key in [json!("b"), json!("c"), Value::Null] {
        let behind = ask(3, key).await.refused(409, "behind");
        let message = behind["message"].as_str().unwrap();
        assert!(
            message.contains("round 3") && message.contains("restored or a copy"),
            "{message}"
        );
        assert_eq!(behind["value"], 3);
    }
    assert_eq!(
        house.state("e").await["decided"],
        2,
        "nothing was handed out"
    );
    house
        .post("/v1/experiments/e/close", &json!({}))
        .await
        .expect(200);
    ask(3, Value::Null).await.refused(409, "behind");
    assert!(openapi::text().contains("`behind`"));
}
