//! Bad clients: each a clear 4xx, and nothing has changed. And what the service itself can fail with.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use debora_cli::service::http::{App, Shared};
use serde_json::{Value, json};

use crate::{House, SHORT, outcomes};

/// All that is stored about the experiment, and how many there are.
async fn everything(house: &House) -> (String, Value, Value) {
    let log = house.get("/v1/experiments/e/log?limit=10000").await.text();
    let state = house.state("e").await;
    (log, state, house.get("/v1/experiments").await.expect(200))
}

/// A house with an experiment "e" that has told and outstanding rounds, and another, "other", that is further.
async fn house() -> House {
    let house = House::new();
    for (id, told) in [("e", 3), ("other", 6)] {
        house.create(id, SHORT).await;
        for _ in 0..told {
            let decided = house.decide(id, 8).await;
            house.tell(id, &outcomes(&decided, 1.0, 0.01)).await;
        }
        house.decide(id, 1).await;
    }
    house
}

#[tokio::test]
async fn bad_decision_requests_change_nothing() {
    let house = house().await;
    let before = everything(&house).await;
    let long = format!(r#"{{"n":1,"request_key":"{}"}}"#, "k".repeat(129));
    let bad = [
        ("", 400, "malformed"),
        ("nonsense", 400, "malformed"),
        ("{\"n\":1", 400, "malformed"),
        ("{\"n\":NaN}", 400, "malformed"),
        ("{\"n\":Infinity}", 400, "malformed"),
        ("{\"n\":1e999}", 400, "malformed"),
        ("{\"n\":1}{\"n\":1}", 400, "malformed"),
        ("\u{feff}{\"n\":1}", 400, "malformed"),
        ("{}", 422, "unfit"),
        ("[1]", 422, "unfit"),
        ("null", 422, "unfit"),
        ("1", 422, "unfit"),
        ("{\"n\":null}", 422, "unfit"),
        ("{\"n\":\"1\"}", 422, "unfit"),
        ("{\"n\":1.5}", 422, "unfit"),
        ("{\"n\":-1}", 422, "unfit"),
        ("{\"n\":true}", 422, "unfit"),
        ("{\"n\":18446744073709551616}", 422, "unfit"),
        ("{\"n\":1,\"n\":1}", 422, "unfit"),
        ("{\"n\":1,\"rounds\":1}", 422, "unfit"),
        ("{\"n\":1,\"request_key\":7}", 422, "unfit"),
        ("{\"n\":0}", 422, "rounds"),
        ("{\"n\":10001}", 422, "rounds"),
        ("{\"n\":9223372036854775808}", 422, "rounds"),
        ("{\"n\":1,\"request_key\":\"\"}", 422, "request_key"),
        ("{\"n\":1,\"request_key\":\"a\\u0000\"}", 422, "request_key"),
        (&long, 422, "request_key"),
    ];
    for (body, status, code) in bad {
        house
            .post_text("/v1/experiments/e/decisions", body)
            .await
            .refused(status, code);
        assert_eq!(everything(&house).await, before, "{body}");
    }
    let rule = house
        .post_text("/v1/experiments/e/decisions", "{\"n\":0}")
        .await
        .json();
    assert_eq!(
        (&rule["rule"], &rule["value"]),
        (&json!("1 <= n <= 10000"), &json!(0))
    );
}

#[tokio::test]
async fn bad_outcomes_change_nothing() {
    let house = house().await;
    let before = everything(&house).await;
    let good = r#"{"round":8,"reward":0.5,"costs":{"price":0.01}}"#;
    let many = format!("[{}]", vec![good; 10_001].join(","));
    let bad = [
        (
            "[{\"round\":8,\"reward\":NaN,\"costs\":[0.01]}]",
            400,
            "malformed",
        ),
        (
            "[{\"round\":8,\"reward\":-Infinity,\"costs\":[0.01]}]",
            400,
            "malformed",
        ),
        (
            "[{\"round\":8,\"reward\":1e400,\"costs\":[0.01]}]",
            400,
            "malformed",
        ),
        (good, 422, "unfit"),
        ("{\"outcomes\":[]}", 422, "unfit"),
        ("[[8,null,null,0.5,[0.01]]]", 422, "unfit"),
        (
            "[{\"round\":8,\"reward\":\"0.5\",\"costs\":[0.01]}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":null,\"costs\":[0.01]}]",
            422,
            "unfit",
        ),
        ("[{\"round\":8,\"costs\":[0.01]}]", 422, "unfit"),
        ("[{\"reward\":0.5,\"costs\":[0.01]}]", 422, "unfit"),
        (
            "[{\"round\":8,\"epoch\":3,\"overtime\":1,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "unfit",
        ),
        (
            "[{\"overtime\":1,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":-8,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":[0.01],\"note\":1}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":{\"prize\":0.01}}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":{\"price\":null}}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":0.01}]",
            422,
            "unfit",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":{\"price\":0.01,\"price\":0.01}}]",
            422,
            "outcome",
        ),
        ("[{\"round\":8,\"reward\":0.5}]", 422, "outcome"),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":[]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":[0.01,0.01]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":8,\"reward\":1.5,\"costs\":[0.01]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":[-0.01]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":0,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":65,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "outcome",
        ),
        (
            "[{\"round\":9223372036854775808,\"reward\":0.5,\"costs\":[0.01]}]",
            422,
            "outcome",
        ),
        (&many, 413, "too_many"),
        // A round of "other" that "e" has not come to, and one of a known round beside a value that is refused.
        (
            "[{\"round\":20,\"reward\":0.5,\"costs\":[0.01]}]",
            404,
            "no_such_round",
        ),
        (
            "[{\"epoch\":9223372036854775808,\"overtime\":1,\"reward\":0.5,\"costs\":[0.01]}]",
            404,
            "no_such_round",
        ),
        (
            "[{\"round\":8,\"reward\":0.5,\"costs\":[0.01]},{\"round\":8,\"reward\":7,\"costs\":[0.01]}]",
            422,
            "outcome",
        ),
    ];
    for (body, status, code) in bad {
        house
            .post_text("/v1/experiments/e/outcomes", body)
            .await
            .refused(status, code);
        assert_eq!(everything(&house).await, before, "{body}");
    }
    let text = "[{\"round\":8,\"reward\":1.5,\"costs\":[0.01]}]";
    let body = house
        .post_text("/v1/experiments/e/outcomes", text)
        .await
        .json();
    assert_eq!(
        (&body["rule"], &body["value"]),
        (&json!("0.0 <= quality <= 1.0"), &json!(1.5))
    );
    for (text, named) in [
        (
            "[{\"round\":8,\"reward\":\"0.5\"}]",
            "mistyped fields at \"[0].reward\": invalid type: string",
        ),
        (" {\"round\":8,\"reward\":0.5}", "send a list of outcomes"),
        (
            "[{\"round\":20,\"reward\":0.5,\"costs\":[0.01]}]",
            "round 20 was never decided in experiment \"e\"",
        ),
    ] {
        let body = house
            .post_text("/v1/experiments/e/outcomes", text)
            .await
            .json();
        assert!(body["message"].as_str().unwrap().contains(named), "{body}");
    }
}

#[tokio::test]
async fn bad_experiments_are_not_created() {
    let house = house().await;
    let before = everything(&house).await;
    let world = format!(
        "{SHORT}\n[world]\nkind = 'bernoulli'\nreward = [0.1, 0.2]\ncost.price = [0.01, 0.02]\n"
    );
    let bad = [
        (json!({}), 422, "unfit"),
        (json!([SHORT]), 422, "unfit"),
        (json!({ "spec": 7 }), 422, "unfit"),
        (
            json!({ "spec": SHORT, "blind": true, "name": "x" }),
            422,
            "unfit",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "key": -1 }),
            422,
            "unfit",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "key": 1.5 }),
            422,
            "unfit",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "key": "12" }),
            422,
            "unfit",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "id": "" }),
            422,
            "id_text",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "id": "Upper" }),
            422,
            "id_text",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "id": "a/b" }),
            422,
            "id_text",
        ),
        (
            json!({ "spec": SHORT, "blind": true, "id": "x".repeat(129) }),
            422,
            "id_text",
        ),
        (json!({ "spec": SHORT }), 422, "blind"),
        (json!({ "spec": "" }), 422, "spec"),
        (json!({ "spec": "policy = 'sofd'" }), 422, "spec"),
        (json!({ "spec": "\u{0}" }), 422, "spec"),
        (json!({ "spec": world, "blind": true }), 422, "world"),
        (
            json!({ "spec": format!("key = 1\n{SHORT}"), "blind": true }),
            422,
            "key_in_spec",
        ),
        (
            json!({ "spec": format!("{SHORT}\n"), "blind": true, "id": "e" }),
            409,
            "id_taken",
        ),
    ];
    for (body, status, code) in bad {
        house
            .post("/v1/experiments", &body)
            .await
            .refused(status, code);
        assert_eq!(everything(&house).await, before, "{body}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be() {
    let house = house().await;
    for path in ["", "/state", "/log", "/certificate"] {
        house
            .get(&format!("/v1/experiments/none{path}"))
            .await
            .refused(404, "no_experiment");
    }
    for id in ["none", "%00", "a%2Fb", "%C3%A9", "E"] {
        let path = format!("/v1/experiments/{id}/decisions");
        house
            .post_text(&path, "{\"n\":1}")
            .await
            .refused(404, "no_experiment");
    }
    for (path, body) in [
        ("outcomes", "[]"),
        ("pause", "{}"),
        ("resume", "{}"),
        ("close", ""),
    ] {
        house
            .post_text(&format!("/v1/experiments/none/{path}"), body)
            .await
            .refused(404, "no_experiment");
    }
    house
        .post_text("/v1/experiments/%FF/decisions", "{\"n\":1}")
        .await
        .refused(400, "malformed");
    house.get("/v1/nowhere").await.refused(404, "no_route");
    let reply = house.get("/v1/experiments/e/decisions").await;
    reply.refused(405, "method");
    assert_eq!(reply.headers["allow"], "POST");
}

#[tokio::test]
async fn bodies_are_json_not_too_long_and_not_too_slow() {
    let house = house().await;
    let before = everything(&house).await;
    for kind in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
    ] {
        let request = Request::post("/v1/experiments/e/decisions");
        let request = if kind.is_empty() {
            request
        } else {
            request.header("content-type", kind)
        };
        house
            .send(request.body("{\"n\":1}".into()).unwrap())
            .await
            .refused(415, "media_type");
    }
    let json = |body: Body| {
        Request::post("/v1/experiments/e/decisions")
            .header("content-type", "application/json")
            .body(body)
    };
    let long = " ".repeat((8 << 20) + 1);
    house
        .send(json(long.clone().into()).unwrap())
        .await
        .refused(413, "too_large");
    let mut declared = json(Body::empty()).unwrap();
    declared
        .headers_mut()
        .insert("content-length", "8388609".parse().unwrap());
    house.send(declared).await.refused(413, "too_large");
    // Within the limit, and JSON all the same.
    let room = " ".repeat(1 << 20) + "{\"n\":0}";
    house
        .send(json(room.into()).unwrap())
        .await
        .refused(422, "rounds");

    let hasty = App::new(Shared::new(
        house.service.clone(),
        Duration::from_millis(50),
    ));
    let reply = hasty.answer(json(Body::new(Never)).unwrap()).await;
    assert_eq!(reply.status(), 408);
    assert_eq!(everything(&house).await, before);
}

/// A body that never comes.
struct Never;

impl hyper::body::Body for Never {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_store_that_fails_is_a_503_whose_reason_stays_in_the_log() {
    let house = house().await;
    let debora_cli::store::Location::Sqlite(path) = house.location() else {
        unreachable!()
    };
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch("DROP TABLE progress")
        .unwrap();
    for reply in [
        house.get("/v1/experiments").await,
        house.get("/v1/experiments/e/state").await,
        house
            .post_text("/v1/experiments/e/decisions", "{\"n\":1}")
            .await,
    ] {
        let body = reply.refused(503, "store");
        assert!(!body.to_string().contains("progress"), "{body}");
        assert_eq!(reply.headers["retry-after"], "1");
    }
}

/// [`crate::Reply::refused`] looks for Retry-After in each.
#[tokio::test]
async fn a_service_that_stops_says_when_to_ask_again() {
    let house = house().await;
    house.service.stop().unwrap();
    for (method, path, body) in [
        ("POST", "/v1/experiments/e/decisions", "{\"n\":1}"),
        ("POST", "/v1/experiments/e/outcomes", "[]"),
        ("POST", "/v1/experiments/e/pause", "{}"),
        ("GET", "/health", ""),
        ("GET", "/ready", ""),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let reply = house.send(request.body(body.into()).unwrap()).await;
        reply.refused(503, "stopping");
    }
}

#[tokio::test]
async fn a_service_that_has_stopped_says_so() {
    let house = house().await;
    assert_eq!(house.get("/health").await.expect(200)["status"], "ok");
    house.service.stop().unwrap();
    house
        .post_text("/v1/experiments/e/decisions", "{\"n\":1}")
        .await
        .refused(503, "stopping");
    house.get("/health").await.refused(503, "stopping");
}
