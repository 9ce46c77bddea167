//! What admins do over HTTP: keys, changes with a reason, and how the service is; and errors for people.

use axum::body::Body;
use axum::http::Request;
use debora_cli::store::{Purpose, Role};
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::keys::with_key;
use crate::{House, Reply, SHORT, outcomes};

/// What a browser sends with everything.
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

pub(crate) async fn browse(house: &House, path: &str, cookie: &str) -> Reply {
    let request = Request::get(path)
        .header("accept", BROWSER)
        .header("host", "localhost:8080")
        .header("cookie", cookie);
    house.send(request.body(Body::empty()).unwrap()).await
}

async fn submit(house: &House, path: &str, fields: &[(&str, &str)], cookie: &str) -> Reply {
    let request = Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", BROWSER)
        .header("host", "localhost:8080")
        .header("origin", "http://localhost:8080")
        .header("cookie", cookie);
    let body = serde_urlencoded::to_string(fields).unwrap();
    house.send(request.body(body.into()).unwrap()).await
}

fn cookie(reply: &Reply) -> String {
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

pub(crate) async fn log_in(house: &House, key: &str) -> String {
    cookie(&submit(house, "/login", &[("key", key)], "").await)
}

#[track_caller]
fn shows(reply: &Reply, status: u16, words: &[&str]) {
    let text = reply.text();
    assert_eq!(reply.status.as_u16(), status, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in\n{text}");
    }
}

#[track_caller]
fn leads_to(reply: &Reply, path: &str) {
    let location = reply.headers.get("location").map(|to| to.to_str().unwrap());
    assert_eq!((reply.status.as_u16(), location), (303, Some(path)));
}

/// A house with an admin, one of its own experiments alone, and one who reads.
async fn staffed() -> House {
    let house = House::new();
    house.create("e", SHORT).await;
    set_key(&house, "boss", Role::Admin, None);
    set_key(&house, "reader", Role::Read, None);
    house.wait(2_000);
    let body = json!({ "name": "partner", "role": "admin", "experiments": ["e"] });
    with_key(&house, "POST", "/v1/keys", "boss", body)
        .await
        .expect(201);
    house
}

fn made_key(reply: &Reply) -> String {
    let text = reply.text();
    let start = text.find(">debora_").unwrap() + 1;
    text[start..start + 71].to_owned()
}

fn listed<'a>(keys: &'a Value, name: &str) -> &'a Value {
    let mut keys = keys["keys"].as_array().unwrap().iter();
    keys.find(|key| key["name"] == name).unwrap()
}

#[tokio::test]
async fn keys_are_made_listed_used_and_revoked_as_json() {
    let house = staffed().await;
    let ask = |method, path, body| with_key(&house, method, path, "boss", body);
    let body = json!({ "name": "router", "role": "decide", "experiments": ["e", "later"] });
    let made = ask("POST", "/v1/keys", body.clone()).await.expect(201);
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("debora_") && key.len() == 71, "{made}");
    ask("POST", "/v1/keys", body)
        .await
        .refused(409, "key_taken");
    // Names of dots lead elsewhere in an address.
    for name in [
        "",
        "loopback",
        "debora",
        "a b",
        "é",
        ".",
        "..",
        &"n".repeat(65),
    ] {
        let body = json!({ "name": name, "role": "read" });
        ask("POST", "/v1/keys", body).await.refused(422, "key_name");
    }
    let body = json!({ "name": "x", "role": "read", "experiments": ["A"] });
    ask("POST", "/v1/keys", body).await.refused(422, "id_text");
    let body = json!({ "name": "x", "role": "king" });
    ask("POST", "/v1/keys", body).await.refused(422, "unfit");

    let keys = ask("GET", "/v1/keys", json!(null)).await.expect(200);
    let router = listed(&keys, "router");
    assert_eq!(router["experiments"], json!(["e", "later"]));
    assert_eq!(
        (&router["last_used_at"], &router["revoked_at"]),
        (&Value::Null, &Value::Null)
    );
    let text = keys.to_string();
    assert!(!text.contains(&key) && !text.contains("hash"), "{text}");

    // It works at once, and so does its end.
    let decide = || {
        let request = Request::post("/v1/experiments/e/decisions")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {key}"));
        house.send(request.body(Body::from(r#"{"n": 1}"#)).unwrap())
    };
    decide().await.expect(200);
    let revoke = "/v1/keys/router/revoke";
    ask("POST", revoke, json!(null)).await.expect(200);
    decide().await.refused(401, "no_key");
    ask("POST", revoke, json!(null))
        .await
        .refused(409, "key_revoked");
    let unknown = ask("POST", "/v1/keys/eve/revoke", json!(null)).await;
    let sentence = unknown.refused(404, "no_such_key")["message"].to_string();
    assert!(
        sentence.contains("boss, partner, reader and router"),
        "{sentence}"
    );
}

#[tokio::test]
async fn only_admins_of_all_experiments_see_and_change_who_may_do_what() {
    let house = staffed().await;
    let keys = with_key(&house, "GET", "/v1/keys", "boss", json!(null))
        .await
        .expect(200);
    assert!(listed(&keys, "partner")["experiments"].is_array());
    let body = json!({ "name": "x", "role": "read" });
    with_key(&house, "POST", "/v1/keys", "reader", body.clone())
        .await
        .refused(403, "wrong_role");
    // The partner's own key is only known where it was made.
    let request = json!({ "name": "partner-2", "role": "admin", "experiments": ["e"] });
    let made = with_key(&house, "POST", "/v1/keys", "boss", request)
        .await
        .expect(201);
    let partner = log_in(&house, made["key"].as_str().unwrap()).await;
    let reader = log_in(&house, &token("reader")).await;
    for (cookie, why) in [(&partner, "for all experiments"), (&reader, "role read")] {
        for path in ["/admin", "/admin/keys", "/admin/webhooks"] {
            shows(
                &browse(&house, path, cookie).await,
                403,
                &[why, "Your key does not allow this"],
            );
        }
        let fields = [("name", "x"), ("role", "read"), ("scope", "all")];
        shows(
            &submit(&house, "/admin/keys", &fields, cookie).await,
            403,
            &[why],
        );
        shows(
            &submit(&house, "/admin/keys/boss/revoke", &[], cookie).await,
            403,
            &[why],
        );
        for path in ["/", "/api", "/experiments/e"] {
            let text = browse(&house, path, cookie).await.text();
            assert!(!text.contains("href=\"/admin"), "{path}");
        }
    }
    let boss = log_in(&house, &token("boss")).await;
    assert!(
        browse(&house, "/", &boss)
            .await
            .text()
            .contains("href=\"/admin")
    );
    // Who may pause an experiment is another matter.
    assert!(
        browse(&house, "/experiments/e", &partner)
            .await
            .text()
            .contains("action=\"/experiments/e/close\"")
    );
    assert!(
        !browse(&house, "/experiments/e", &reader)
            .await
            .text()
            .contains("action=\"/experiments/e/close\"")
    );
}

#[tokio::test]
async fn a_key_is_shown_once_on_a_page_that_nothing_keeps() {
    let house = staffed().await;
    let boss = log_in(&house, &token("boss")).await;
    shows(
        &browse(&house, "/admin/keys", &boss).await,
        200,
        &["boss", "(yours)", "never", "Revoke"],
    );
    let fields = [
        ("name", "night shift@example.org"),
        ("role", "decide"),
        ("scope", "some"),
        ("experiment", "e"),
        ("ids", "later, much-later"),
    ];
    let refused = submit(&house, "/admin/keys", &fields, &boss).await;
    let typed = [
        "cannot be a key&#39;s name",
        "value=\"night shift@example.org\"",
        "later, much-later",
        "option value=\"e\" selected",
    ];
    let text = refused.text().replace("'", "&#39;");
    assert_eq!(refused.status, 422);
    typed
        .iter()
        .for_each(|word| assert!(text.contains(word), "{word}: {text}"));
    let named = [&[("name", "night")], &fields[1..]].concat();
    let made = submit(&house, "/admin/keys", &named, &boss).await;
    shows(
        &made,
        200,
        &["not shown again", "role decide", "e, later and much-later"],
    );
    assert_eq!(made.headers["cache-control"], "no-store");
    assert!(!made.headers.contains_key("location"));
    // Not compressed beside a name that others may choose, unlike other pages: its size would tell of the key.
    for (request, encoded) in [
        (Request::get("/admin/keys").body(String::new()), true),
        (
            Request::post("/admin/keys")
                .header("content-type", "application/x-www-form-urlencoded")
                .body("name=day&role=read&scope=all".to_owned()),
            false,
        ),
    ] {
        let mut request = request.unwrap().map(Body::from);
        for (name, value) in [("cookie", boss.as_str()), ("accept-encoding", "gzip")] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let reply = house.send(request).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers.contains_key("content-encoding"), encoded);
    }
    let key = made_key(&made);
    assert!(!log_in(&house, &key).await.contains(&key));
    for path in ["/admin/keys", "/v1/keys", "/admin"] {
        assert!(
            !browse(&house, path, &boss).await.text().contains(&key),
            "{path}"
        );
    }
    // Neither more nor less than was meant.
    for (scope, ids) in [("some", ""), ("all", "e")] {
        let fields = [
            ("name", "x"),
            ("role", "read"),
            ("scope", scope),
            ("ids", ids),
        ];
        shows(
            &submit(&house, "/admin/keys", &fields, &boss).await,
            422,
            &["No key was made"],
        );
    }
}

#[tokio::test]
async fn the_last_admin_key_stays_and_ones_own_logs_out() {
    let house = staffed().await;
    let boss = log_in(&house, &token("boss")).await;
    let last = submit(&house, "/admin/keys/boss/revoke", &[], &boss).await;
    shows(
        &last,
        409,
        &["last admin key for all experiments", "debora keys revoke"],
    );
    with_key(&house, "POST", "/v1/keys/boss/revoke", "boss", json!(null))
        .await
        .refused(409, "last_admin");
    let body = json!({ "name": "deputy", "role": "admin" });
    with_key(&house, "POST", "/v1/keys", "boss", body)
        .await
        .expect(201);
    leads_to(
        &submit(&house, "/admin/keys/boss/revoke", &[], &boss).await,
        "/admin/keys",
    );
    leads_to(
        &browse(&house, "/admin/keys", &boss).await,
        "/login?next=%2Fadmin%2Fkeys",
    );
}

#[tokio::test]
async fn the_first_key_is_an_admins_and_its_maker_is_logged_in() {
    let house = House::new();
    shows(
        &browse(&house, "/admin/keys", "").await,
        200,
        &[
            "everyone who can reach this address is admin",
            "Make the first key",
        ],
    );
    let fields = |role| [("name", "ann"), ("role", role), ("scope", "all")];
    shows(
        &submit(&house, "/admin/keys", &fields("decide"), "").await,
        422,
        &["first key must have role admin"],
    );
    let scoped = json!({ "name": "ann", "role": "admin", "experiments": ["e"] });
    house
        .post("/v1/keys", &scoped)
        .await
        .refused(422, "first_key");
    let made = submit(&house, "/admin/keys", &fields("admin"), "").await;
    shows(&made, 200, &["It is the first key", "you are logged in"]);
    let session = cookie(&made);
    shows(
        &browse(&house, "/admin/keys", &session).await,
        200,
        &["ann", "(yours)"],
    );
    // At once, for everyone else.
    house.get("/v1/experiments").await.refused(401, "no_key");
    leads_to(&browse(&house, "/", "").await, "/login");
    assert!(!log_in(&house, &made_key(&made)).await.is_empty());
}

/// What makes a form one that was rendered, and not another.
fn once_of(page: &Reply) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("name=\"once\" value=\"").expect(&text);
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn the_first_key_is_shown_again_if_its_form_is_sent_again() {
    let house = House::new();
    let once = once_of(&browse(&house, "/admin/keys", "").await);
    let fields = [
        ("name", "ann"),
        ("role", "admin"),
        ("scope", "all"),
        ("once", &*once),
    ];
    // A second click: both are on their way before either is answered.
    let (one, other) = tokio::join!(
        submit(&house, "/admin/keys", &fields, ""),
        submit(&house, "/admin/keys", &fields, "")
    );
    let key = made_key(&one);
    assert_eq!(made_key(&other), key);
    // A third, once every request needs a key.
    let third = submit(&house, "/admin/keys", &fields, "").await;
    shows(&third, 200, &["It is the first key", &key]);
    assert_eq!(third.headers["cache-control"], "no-store");
    let keys = browse(&house, "/v1/keys", &cookie(&third)).await.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
    // Another form is another's, and so is the same one with another wish, or without what makes it one.
    let others = [
        [&fields[..3], &[("once", "0123")]].concat(),
        [&[("name", "eve")], &fields[1..]].concat(),
        fields[..3].to_vec(),
    ];
    for fields in others {
        leads_to(&submit(&house, "/admin/keys", &fields, "").await, "/login");
    }
    house.wait(60_001);
    leads_to(&submit(&house, "/admin/keys", &fields, "").await, "/login");
}

#[tokio::test]
async fn a_later_key_is_shown_again_to_the_one_who_made_it_alone() {
    let house = staffed().await;
    set_key(&house, "deputy", Role::Admin, None);
    house.wait(2_000);
    let boss = log_in(&house, &token("boss")).await;
    let deputy = log_in(&house, &token("deputy")).await;
    for microseconds in [1, 10, 100, 300, 1_000, 3_000, 10_000] {
        let once = once_of(&browse(&house, "/admin/keys", &boss).await);
        let name = format!("router-{microseconds}");
        let fields = [
            ("name", &*name),
            ("role", "decide"),
            ("scope", "all"),
            ("once", &*once),
        ];
        // Hung up on, at some moment.
        let first = submit(&house, "/admin/keys", &fields, &boss);
        let patience = std::time::Duration::from_micros(microseconds);
        let _ = tokio::time::timeout(patience, first).await;
        let second = submit(&house, "/admin/keys", &fields, &boss).await;
        shows(&second, 200, &["role decide"]);
        let third = submit(&house, "/admin/keys", &fields, &boss).await;
        assert_eq!(made_key(&third), made_key(&second));
        let eve = submit(&house, "/admin/keys", &fields, &deputy).await;
        shows(&eve, 409, &["there is, or was, a key named"]);
        assert!(!eve.text().contains(&made_key(&second)));
    }
}

#[tokio::test]
async fn a_key_whose_name_no_address_can_hold_is_revoked_by_the_program() {
    let house = staffed().await;
    set_key(&house, "..", Role::Read, None);
    house.wait(2_000);
    let boss = log_in(&house, &token("boss")).await;
    let page = browse(&house, "/admin/keys", &boss).await;
    shows(&page, 200, &["debora keys revoke .."]);
    assert!(!page.text().contains("/admin/keys/../revoke"));
}

#[tokio::test]
async fn the_last_use_of_a_key_is_stored_seldom_by_ticks_and_survives_restarts() {
    let mut house = House::new();
    house.create("e", SHORT).await;
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    let stored = |house: &House| {
        let mut store = house.location().open(Purpose::Read).unwrap();
        store.keys().unwrap()[0].last_used_at
    };
    let now = |house: &House| house.clock.load(std::sync::atomic::Ordering::Relaxed);
    let begun = now(&house);
    let ask = || {
        let request = Request::post("/v1/experiments/e/decisions")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", token("boss")));
        request.body(Body::from(r#"{"n": 1}"#)).unwrap()
    };
    house.send(ask()).await.expect(200);
    assert_eq!(stored(&house), None, "a decision stores nothing of it");
    house.service.tick().await.unwrap();
    assert_eq!(stored(&house), Some(begun));
    // Within a minute no tick writes again; after it, one does.
    house.wait(30_000);
    house.send(ask()).await;
    house.service.tick().await.unwrap();
    assert_eq!(stored(&house), Some(begun));
    house.wait(30_000);
    house.service.tick().await.unwrap();
    assert_eq!(stored(&house), Some(begun + 30_000));
    house.send(ask()).await;
    house.restart();
    assert_eq!(
        stored(&house),
        Some(begun + 60_000),
        "a stop stores the rest"
    );
    let session = log_in(&house, &token("boss")).await;
    house.wait(90_000);
    browse(&house, "/", &session).await;
    house.service.tick().await.unwrap();
    assert_eq!(stored(&house), Some(now(&house)), "a session uses its key");
    let page = browse(&house, "/admin/keys", &session).await.text();
    assert!(!page.contains("never"), "{page}");
}

#[tokio::test]
async fn a_reason_typed_into_a_form_is_in_the_log() {
    let house = House::new();
    house.create("e", SHORT).await;
    let page = browse(&house, "/experiments/e", "").await;
    shows(
        &page,
        200,
        &["Pause …", "name=\"reason\"", "ends the experiment for good"],
    );
    let pause = |reason| submit_one(&house, "/experiments/e/pause", reason);
    shows(&pause("x".repeat(1_001)).await, 422, &["1001 bytes"]);
    shows(&pause("a\u{7}b".into()).await, 422, &["control characters"]);
    leads_to(
        &pause("  the <b>feed</b> is down\r\nsince 9  ".into()).await,
        "/experiments/e",
    );
    leads_to(
        &submit(&house, "/experiments/e/resume", &[("reason", " ")], "").await,
        "/experiments/e",
    );
    leads_to(
        &submit(
            &house,
            "/experiments/e/close",
            &[("reason", "done with it")],
            "",
        )
        .await,
        "/experiments/e",
    );
    let log = house.get("/v1/experiments/e/log?limit=99").await.text();
    let reasons: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "event")
        .map(|line| line["reason"].clone())
        .collect();
    let expected = [
        Value::Null,
        json!("the <b>feed</b> is down\nsince 9"),
        Value::Null,
        json!("done with it"),
    ];
    assert_eq!(reasons, expected, "{log}");
}

async fn submit_one(house: &House, path: &str, reason: String) -> Reply {
    submit(house, path, &[("reason", &reason)], "").await
}

#[tokio::test]
async fn health_is_in_words_and_names_no_secret() {
    let house = staffed().await;
    let boss = log_in(&house, &token("boss")).await;
    house.wait(3_600_000);
    let page = browse(&house, "/admin", &boss).await;
    let version = concat!("debora ", env!("CARGO_PKG_VERSION"));
    shows(
        &page,
        200,
        &[
            "All is well",
            "1 h",
            "SQLite file",
            "store.db",
            version,
            &house.service.start.identity,
            "(this one)",
            "3 keys work, 1 session is",
        ],
    );
    house.app.state.sample();
    let decided = {
        let body = json!({ "n": 1 });
        with_key(&house, "POST", "/v1/experiments/e/decisions", "boss", body)
            .await
            .expect(200)
    };
    let told = outcomes(&decided, 1.0, 0.01);
    with_key(&house, "POST", "/v1/experiments/e/outcomes", "boss", told)
        .await
        .expect(200);
    house.wait(10_000);
    house.app.state.sample();
    shows(
        &browse(&house, "/admin", &boss).await,
        200,
        &["<dd>0.1</dd>"],
    );
    house
        .service
        .counts
        .shed(debora_cli::service::counts::Shed::Writer);
    house.wait(1_000);
    house.app.state.sample();
    shows(
        &browse(&house, "/admin", &boss).await,
        200,
        &["Not well", "1 request was in the last minute refused"],
    );
}

#[tokio::test]
async fn a_store_that_is_gone_is_told_on_the_page() {
    let house = House::new();
    shows(&browse(&house, "/admin", "").await, 200, &["All is well"]);
    let file = house.folder.join("store.db");
    std::fs::rename(&file, house.folder.join("elsewhere.db")).unwrap();
    // What was found is believed for a second.
    let mut text = String::new();
    while !text.contains("Not well") {
        text = browse(&house, "/admin", "").await.text();
    }
    assert!(text.contains("nothing can be committed"), "{text}");
    std::fs::rename(house.folder.join("elsewhere.db"), file).unwrap();
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_json_for_programs() {
    let house = House::new();
    house.create("e", SHORT).await;
    for (path, status, words) in [
        ("/nowhere", 404, "There is nothing here"),
        ("/experiments/none", 404, "There is no such experiment"),
        ("/experiments/e/pause", 405, "This address is not a page"),
        ("/login?next=1&more=2", 422, "That did not work"),
        ("/experiments/%ff", 400, "That did not work"),
    ] {
        let page = browse(&house, path, "").await;
        shows(&page, status, &[words, "href=\"/\"", "<!DOCTYPE html>"]);
        assert!(
            page.headers["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
        assert!(
            page.headers.contains_key("content-security-policy"),
            "{path}"
        );
        assert_eq!(page.headers["cache-control"], "no-store");
    }
    house.get("/nowhere").await.refused(404, "no_route");
    for path in ["/v1/nowhere", "/v1/experiments/none/state"] {
        let error = browse(&house, path, "").await;
        assert!(error.expect(404)["code"].is_string(), "{path}");
    }
    let long = submit_one(&house, "/experiments/e/pause", "x".repeat(9 << 20)).await;
    shows(&long, 413, &["That is too much at once", "Send less"]);
    let nameless = Request::get("/%3Cb%3Enowhere%3C/b%3E").header("accept", BROWSER);
    let page = house.send(nameless.body(Body::empty()).unwrap()).await;
    assert!(!page.text().contains("<b>"), "{}", page.text());
    house.service.stop().unwrap();
    let stopped = submit_one(&house, "/experiments/e/pause", String::new()).await;
    shows(&stopped, 503, &["The service cannot answer"]);
}

#[tokio::test]
async fn a_log_in_leads_back_to_where_one_was() {
    let house = staffed().await;
    leads_to(&browse(&house, "/", "").await, "/login");
    leads_to(
        &browse(&house, "/experiments/e?x=1", "").await,
        "/login?next=%2Fexperiments%2Fe%3Fx%3D1",
    );
    leads_to(
        &browse(&house, "/metrics", "").await,
        "/login?next=%2Fmetrics",
    );
    // A form leads back to its page, if that is one of ours.
    for (referer, to) in [
        (
            "http://localhost:8080/experiments/e",
            "/login?next=%2Fexperiments%2Fe",
        ),
        ("http://evil.example/experiments/e", "/login"),
    ] {
        let request = Request::post("/experiments/e/pause")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("host", "localhost:8080")
            .header("origin", "http://localhost:8080")
            .header("referer", referer);
        leads_to(&house.send(request.body(Body::empty()).unwrap()).await, to);
    }
    shows(
        &browse(&house, "/login?next=%2Fexperiments%2Fe", "").await,
        200,
        &["name=\"next\" value=\"/experiments/e\""],
    );
    let key = token("reader");
    let enter = |next: &'static str| {
        let house = &house;
        let fields = [("key", key.as_str()), ("next", next)].map(|(a, b)| (a, b.to_owned()));
        async move {
            let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (*a, b.as_str())).collect();
            submit(house, "/login", &fields, "").await
        }
    };
    leads_to(&enter("/experiments/e?x=1").await, "/experiments/e?x=1");
    for evil in [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "/\t/evil.example",
        "evil",
    ] {
        leads_to(&enter(evil).await, "/");
        let query = serde_urlencoded::to_string([("next", evil)]).unwrap();
        let page = browse(&house, &format!("/login?{query}"), "").await.text();
        assert!(!page.contains("evil"), "{page}");
    }
    let wrong = submit(
        &house,
        "/login",
        &[("key", "debora_x"), ("next", "/api")],
        "",
    )
    .await;
    shows(&wrong, 401, &["unknown or revoked", "value=\"/api\""]);
    let reader = log_in(&house, &key).await;
    leads_to(&browse(&house, "/login?next=%2Fapi", &reader).await, "/api");
    leads_to(&submit(&house, "/logout", &[], &reader).await, "/login");
    leads_to(
        &browse(&house, "/experiments/e", &reader).await,
        "/login?next=%2Fexperiments%2Fe",
    );
}
