//! Who may do what, over every documented route.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Request;
use debora_cli::hex;
use debora_cli::service::http::openapi;
use debora_cli::store::{ApiKey, Purpose, Role};
use hyper::body::Frame;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{House, KEY, Reply, SHORT};

/// A key as `debora keys add` makes them.
pub(crate) fn token(name: &str) -> String {
    format!("debora_{}", hex::encode(&Sha256::digest(name)))
}

pub(crate) fn set_key(house: &House, name: &str, role: Role, revoked_at: Option<i64>) {
    let mut store = house.location().open(Purpose::Write).unwrap();
    let key = ApiKey {
        name: name.into(),
        role,
        hash: hex::encode(&Sha256::digest(token(name))),
        created_at: 0,
        revoked_at,
        experiments: None,
        last_used_at: None,
    };
    store.begin().unwrap();
    store.set_key(&key).unwrap();
    store.commit().unwrap();
}

async fn ask(house: &House, method: &str, path: &str, token: Option<&str>) -> Reply {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    house.send(request.body(Body::from("{}")).unwrap()).await
}

/// Method, path and description of every documented operation.
pub(crate) fn operations() -> Vec<(String, String, String)> {
    let document: Value = serde_json::from_str(openapi::text()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let description = operation["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            operations.push((method.to_uppercase(), path.clone(), description));
        }
    }
    operations
}

/// A body that must not be asked for.
struct Unasked(Arc<AtomicBool>);

impl hyper::body::Body for Unasked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.store(true, Ordering::Relaxed);
        Poll::Ready(None)
    }
}

/// A key that may not do it takes none of the memory that bodies share.
#[tokio::test]
async fn role_and_scope_are_known_before_the_body() {
    let house = House::new();
    house.create("e", SHORT).await;
    set_key(&house, "read", Role::Read, None);
    house.wait(2_000);
    // What a reader may post has no body.
    let json = operations()
        .into_iter()
        .filter(|(method, _, description)| method == "POST" && !description.contains("Role read."));
    let json = json.map(|(_, path, _)| {
        (
            path.replace("{id}", "e").replace("{name}", "ann"),
            "application/json",
        )
    });
    let form = ("/new".to_owned(), "application/x-www-form-urlencoded");
    for (path, kind) in json.chain([form]) {
        let asked = Arc::new(AtomicBool::new(false));
        let request = Request::post(&path)
            .header("content-type", kind)
            .header("authorization", format!("Bearer {}", token("read")));
        let body = Body::new(Unasked(Arc::clone(&asked)));
        let refused = house.send(request.body(body).unwrap()).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert!(!asked.load(Ordering::Relaxed), "{path}");
    }
}

#[tokio::test]
async fn every_route_demands_the_role_it_is_documented_with() {
    let house = House::new();
    house.create("e", SHORT).await;
    let roles = [
        ("read", Role::Read),
        ("decide", Role::Decide),
        ("admin", Role::Admin),
    ];
    roles
        .iter()
        .for_each(|(name, role)| set_key(&house, name, *role, None));
    house.wait(2_000);
    for (method, path, description) in operations() {
        let path = path.replace("{id}", "e").replace("{name}", "ann");
        if description.contains("Needs no key.") {
            assert_eq!(
                ask(&house, &method, &path, None).await.status,
                200,
                "{path}"
            );
            continue;
        }
        let needed = description
            .split("Role ")
            .nth(1)
            .and_then(|rest| rest.split(['.', ';']).next());
        let needed = roles.iter().position(|(name, _)| Some(*name) == needed);
        let needed = needed
            .unwrap_or_else(|| panic!("{method} {path} does not say its role: {description}"));
        let reply = ask(&house, &method, &path, None).await;
        reply.refused(401, "no_key");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        ask(&house, &method, &path, Some("debora_wrong"))
            .await
            .refused(401, "no_key");
        for (place, (name, _)) in roles.iter().enumerate() {
            let reply = ask(&house, &method, &path, Some(&token(name))).await;
            if place < needed {
                let body = reply.refused(403, "wrong_role");
                assert_eq!(body["value"], *name);
            } else {
                assert!(
                    ![401, 403].contains(&reply.status.as_u16()),
                    "{method} {path} as {name}: {}",
                    reply.text()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_key_works_within_two_seconds_and_so_does_its_revocation() {
    let house = House::new();
    house.get("/v1/experiments").await.expect(200);
    set_key(&house, "ops", Role::Read, None);
    house.wait(2_000);
    house.get("/v1/experiments").await.refused(401, "no_key");
    ask(&house, "GET", "/v1/experiments", Some(&token("ops")))
        .await
        .expect(200);
    set_key(&house, "ops", Role::Read, Some(1));
    ask(&house, "GET", "/v1/experiments", Some(&token("ops")))
        .await
        .expect(200);
    house.wait(2_000);
    ask(&house, "GET", "/v1/experiments", Some(&token("ops")))
        .await
        .refused(401, "no_key");
    // With every key revoked the service stays shut.
    house.get("/v1/experiments").await.refused(401, "no_key");
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_a_revoked_key_alive() {
    let house = House::new();
    set_key(&house, "ops", Role::Read, None);
    ask(&house, "GET", "/v1/experiments", Some(&token("ops")))
        .await
        .expect(200);
    set_key(&house, "ops", Role::Read, Some(1));
    house.wait(-60_000);
    ask(&house, "GET", "/v1/experiments", Some(&token("ops")))
        .await
        .refused(401, "no_key");
}

#[tokio::test]
async fn the_key_is_shown_to_admins_alone() {
    let house = House::new();
    house.create("e", SHORT).await;
    set_key(&house, "reader", Role::Decide, None);
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    let shown = |name: &'static str| {
        let house = &house;
        async move {
            ask(house, "GET", "/v1/experiments/e", Some(&token(name)))
                .await
                .expect(200)
        }
    };
    let (reader, boss) = (shown("reader").await, shown("boss").await);
    assert!(
        reader.get("key").is_none() && reader.get("salt").is_none(),
        "{reader}"
    );
    assert_eq!(boss["key"], KEY);
    let log = ask(
        &house,
        "GET",
        "/v1/experiments/e/log",
        Some(&token("reader")),
    )
    .await
    .text();
    assert!(!log.contains(KEY), "{log}");
    let event = house.service.read(|store| store.events("e", 0, 9)).unwrap();
    assert_eq!(event[0].actor, "loopback");
    ask(
        &house,
        "POST",
        "/v1/experiments/e/pause",
        Some(&token("boss")),
    )
    .await
    .expect(200);
    assert_eq!(
        house.service.read(|store| store.events("e", 1, 9)).unwrap()[0].actor,
        "boss"
    );
}

#[tokio::test]
async fn pages_from_elsewhere_and_other_names_are_refused() {
    let house = House::new();
    let send = |origin: &'static str, host: &'static str| {
        let request = Request::post("/v1/experiments")
            .header("content-type", "application/json")
            .header("host", host);
        let request = if origin.is_empty() {
            request
        } else {
            request.header("origin", origin)
        };
        let body = json!({ "spec": SHORT, "id": "e", "key": KEY, "blind": true }).to_string();
        house.send(request.body(body.into()).unwrap())
    };
    send("http://evil.example", "127.0.0.1:8080")
        .await
        .refused(403, "cross_origin");
    send("null", "127.0.0.1:8080")
        .await
        .refused(403, "cross_origin");
    send("http://evil.example:8080", "evil.example:8080")
        .await
        .refused(403, "not_local");
    send("", "proxy.example").await.refused(403, "not_local");
    assert_eq!(
        house.get("/v1/experiments").await.expect(200)["experiments"],
        json!([])
    );
    send("http://localhost:8080", "localhost:8080")
        .await
        .expect(201);
}

/// What a proxy forwards comes from anyone, and without keys anyone would be admin; with keys the key decides.
#[tokio::test]
async fn a_keyless_service_refuses_what_a_proxy_forwards() {
    let house = House::new();
    let send = |name: &'static str, key: &'static str| {
        let request = Request::get("/v1/experiments")
            .header("host", "127.0.0.1:8080")
            .header(name, "10.0.0.7")
            .header("authorization", key);
        house.send(request.body(Body::empty()).unwrap())
    };
    let names = [
        "Forwarded",
        "Via",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Anything",
        "X-Real-IP",
        "X-Client-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Scheme",
        "CDN-Loop",
        "X-Envoy-External-Address",
    ];
    for name in names {
        let refused = send(name, "").await.refused(403, "forwarded");
        assert_eq!(refused["value"], name.to_lowercase());
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("debora keys add"), "{message}");
    }
    for page in ["https://public.example/", "http://127.0.0.1.example.org"] {
        for name in ["Origin", "Referer"] {
            let request = Request::get("/v1/experiments").header("host", "127.0.0.1:8080");
            let request = request.header(name, page).body(Body::empty()).unwrap();
            house.send(request).await.refused(403, "not_local");
        }
    }
    send("Accept-Language", "").await.expect(200);
    set_key(&house, "ops", Role::Read, None);
    house.wait(2_000);
    let key: &'static str = format!("Bearer {}", token("ops")).leak();
    for name in names {
        send(name, "").await.refused(401, "no_key");
        send(name, key).await.expect(200);
    }
}

/// A database that is restored to a time before its first key has none, and the addresses that reach the server are the same.
#[tokio::test]
async fn a_store_that_loses_its_keys_lets_nobody_in() {
    let house = House::new();
    let list = || ask(&house, "GET", "/v1/experiments", None);
    list().await.expect(200);
    set_key(&house, "ops", Role::Read, None);
    house.wait(2_000);
    list().await.refused(401, "no_key");
    let file = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
    file.execute("DELETE FROM api_keys", []).unwrap();
    house.wait(2_000);
    list().await.refused(401, "no_key");
    set_key(&house, "again", Role::Read, None);
    house.wait(2_000);
    let key = token("again");
    ask(&house, "GET", "/v1/experiments", Some(&key))
        .await
        .expect(200);
}
