//! The pages: what they show, their forms, the login, and what a browser is told to forbid.

use axum::body::Body;
use axum::http::Request;
use debora_cli::store::Role;
use serde_json::json;

use crate::access::{set_key, token};
use crate::{House, KEY, Reply, SHORT, outcomes};

pub(crate) async fn form(
    house: &House,
    path: &str,
    fields: &[(&str, &str)],
    cookie: &str,
) -> Reply {
    let request = Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("host", "localhost:8080")
        .header("origin", "http://localhost:8080");
    let request = if cookie.is_empty() {
        request
    } else {
        request.header("cookie", cookie)
    };
    house
        .send(
            request
                .body(serde_urlencoded::to_string(fields).unwrap().into())
                .unwrap(),
        )
        .await
}

async fn get_with(house: &House, path: &str, cookie: &str) -> Reply {
    house
        .send(
            Request::get(path)
                .header("cookie", cookie)
                .body(Body::empty())
                .unwrap(),
        )
        .await
}

#[track_caller]
pub(crate) fn shows(reply: &Reply, status: u16, words: &[&str]) {
    let text = reply.text();
    assert_eq!(reply.status.as_u16(), status, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in\n{text}");
    }
}

#[tokio::test]
async fn an_experiment_is_created_paused_and_closed_in_forms() {
    let house = House::new();
    let spec = SHORT.replace('\n', "\r\n");
    let blind = form(
        &house,
        "/new",
        &[("spec", &spec), ("id", "e"), ("key", KEY)],
        "",
    )
    .await;
    shows(&blind, 422, &["BLIND", "short epochs"]);
    let fields = [
        ("spec", spec.as_str()),
        ("id", "e"),
        ("key", KEY),
        ("blind", "yes"),
    ];
    let created = form(&house, "/new", &fields, "").await;
    assert_eq!(
        (created.status.as_u16(), &created.headers["location"]),
        (303, &"/experiments/e".parse().unwrap())
    );
    assert_eq!(
        house.get("/v1/experiments/e").await.expect(200)["spec"],
        SHORT
    );
    shows(
        &house.get("/").await,
        200,
        &["short epochs", "running", "0 of 64"],
    );

    let decided = house.decide("e", 1).await;
    shows(
        &house.get("/experiments/e").await,
        200,
        &["Waiting: all rounds of epoch 0", "1 outcome is outstanding"],
    );
    house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    shows(
        &house.get("/experiments/e").await,
        200,
        &[
            "Running: 1 of 64",
            "hx-trigger",
            "Pause",
            "figures/strategy.csv",
        ],
    );
    assert_eq!(
        form(&house, "/experiments/e/pause", &[], "").await.status,
        303
    );
    shows(
        &house.get("/experiments/e").await,
        200,
        &["Paused after 1 of 64", "Resume"],
    );
    assert_eq!(
        form(&house, "/experiments/e/resume", &[], "").await.status,
        303
    );
    assert_eq!(
        form(&house, "/experiments/e/close", &[], "").await.status,
        303
    );
    let closed = house.get("/experiments/e").await;
    shows(
        &closed,
        200,
        &["Closed after 1 of 64", "/experiments/e/certificate"],
    );
    assert!(
        !closed.text().contains("hx-trigger"),
        "it can no longer change"
    );
    shows(
        &form(&house, "/experiments/e/resume", &[], "").await,
        409,
        &["is closed"],
    );
    shows(
        &house.get("/experiments/none").await,
        404,
        &["There is no experiment &quot;none&quot;"],
    );
}

#[tokio::test]
async fn names_are_text() {
    let house = House::new();
    let spec = SHORT
        .replace("short epochs", "<script>alert(1)</script>")
        .replace("left", "<img src=x>");
    house.create("e", &spec).await;
    for _ in 0..9 {
        let decided = house.decide("e", 64).await;
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    let page = house.get("/experiments/e").await;
    shows(
        &page,
        200,
        &[
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "&lt;img src=x&gt;",
            "<svg",
        ],
    );
    assert!(
        !page.text().contains("<script>") && !page.text().contains("style="),
        "{}",
        page.text()
    );
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
        "{policy}"
    );
    assert_eq!(
        (
            &page.headers["cache-control"],
            &page.headers["x-content-type-options"]
        ),
        (&"no-store".parse().unwrap(), &"nosniff".parse().unwrap())
    );
    for (name, kind) in [
        ("htmx.min.js", "text/javascript"),
        ("pico.min.css", "text/css"),
        ("debora.css", "text/css"),
    ] {
        let asset = house.get(&format!("/assets/{name}")).await;
        assert!(
            asset.headers["content-type"]
                .to_str()
                .unwrap()
                .starts_with(kind)
                && asset.status == 200
        );
    }
    assert_eq!(house.get("/assets/../Cargo.toml").await.status, 404);
}

#[tokio::test]
async fn with_keys_the_pages_need_a_login() {
    let house = House::new();
    house.create("e", SHORT).await;
    set_key(&house, "reader", Role::Read, None);
    set_key(&house, "boss", Role::Admin, None);
    house.wait(2_000);
    for (path, next) in [
        ("/", ""),
        ("/experiments/e", "?next=%2Fexperiments%2Fe"),
        (
            "/experiments/e/figures/strategy.csv",
            "?next=%2Fexperiments%2Fe%2Ffigures%2Fstrategy.csv",
        ),
    ] {
        let reply = house.get(path).await;
        let location = reply.headers["location"].to_str().unwrap();
        let expected = format!("/login{next}");
        assert_eq!((reply.status.as_u16(), location), (303, &*expected));
    }
    shows(&house.get("/login").await, 200, &["API key"]);
    shows(
        &form(&house, "/login", &[("key", "debora_wrong")], "").await,
        401,
        &["unknown or revoked"],
    );

    let entered = form(&house, "/login", &[("key", &token("reader"))], "").await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap().to_owned();
    assert_eq!(entered.status, 303);
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Strict")
            && !cookie.contains("Secure"),
        "{cookie}"
    );
    let reader = cookie.split(';').next().unwrap();
    let page = get_with(&house, "/experiments/e", reader).await;
    shows(&page, 200, &["short epochs", "reader", "Log out"]);
    assert!(
        !page.text().contains("Pause") && !page.text().contains(&token("reader")),
        "{}",
        page.text()
    );
    shows(
        &form(&house, "/experiments/e/pause", &[], reader).await,
        403,
        &["role read"],
    );
    shows(
        &form(
            &house,
            "/new",
            &[("spec", ""), ("id", ""), ("key", "")],
            reader,
        )
        .await,
        403,
        &["role read"],
    );

    shows(&get_with(&house, "/new", reader).await, 403, &["role read"]);
    shows(
        &form(&house, "/new/draft", &[("spec", "")], reader).await,
        403,
        &["role read"],
    );

    let entered = form(&house, "/login", &[("key", &token("boss"))], "").await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap().to_owned();
    let boss = cookie.split(';').next().unwrap();
    shows(
        &get_with(&house, "/experiments/e", boss).await,
        200,
        &["Pause"],
    );
    let log = get_with(&house, "/v1/experiments/e/log", boss).await;
    assert!(log.text().contains(KEY), "an admin's log has the key");
    let left = form(&house, "/logout", &[], boss).await;
    let forgotten: Vec<_> = left.headers.get_all("set-cookie").iter().collect();
    assert!(
        forgotten.len() == 2
            && forgotten
                .iter()
                .all(|cookie| cookie.to_str().unwrap().contains("Max-Age=0")),
        "{forgotten:?}"
    );
}

#[tokio::test]
async fn a_form_on_another_site_changes_nothing() {
    let house = House::new();
    house.create("e", SHORT).await;
    let request = Request::post("/experiments/e/close")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("host", "localhost:8080")
        .header("origin", "https://elsewhere.example");
    house
        .send(request.body(Body::empty()).unwrap())
        .await
        .refused(403, "cross_origin");
    assert_eq!(house.state("e").await["status"], json!("running"));
}

#[tokio::test]
async fn a_page_leaves_nothing_in_the_browser() {
    let page = House::new().get("/").await.text();
    // htmx would keep whole pages in its storage, also after a log-out.
    for setting in ["historyCacheSize", "refreshOnHistoryMiss"] {
        assert!(page.contains(setting), "{page}");
    }
    let (_, size) = page.split_once("&quot;historyCacheSize&quot;:").unwrap();
    assert!(size.starts_with("0,"), "{page}");
}
