//! The page about the interface: every operation is on it, and every example runs.

use axum::body::Body;
use axum::http::Request;
use debora_cli::service::http::openapi;
use debora_cli::service::http::pages::examples::{ADDRESS, EXAMPLES, Example, ExampleBody};
use debora_cli::service::http::problems::CODES;
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{operations, set_key, token};
use crate::{House, Reply};

const SPEC: &str = include_str!("../../../examples/live.toml");

/// What `jq` makes of a text with `$spec` in it.
fn with_spec(text: &str) -> Value {
    serde_json::from_str(&text.replace("$spec", &json!(SPEC).to_string())).unwrap()
}

fn body(example: &Example) -> Option<Value> {
    match example.body {
        ExampleBody::None => None,
        ExampleBody::Json(text) => Some(serde_json::from_str(text).unwrap()),
        ExampleBody::Spec(text) => Some(with_spec(text)),
    }
}

async fn sent(house: &House, example: &Example) -> Reply {
    let mut request = Request::builder()
        .method(example.method)
        .uri(example.path)
        .header("authorization", format!("Bearer {}", token("boss")));
    let body = body(example);
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map_or(Body::empty(), |body| body.to_string().into());
    house.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn every_operation_has_an_example_and_every_example_is_answered_as_it_says() {
    let house = House::new();
    set_key(&house, "boss", Role::Admin, None);
    for example in EXAMPLES {
        let reply = sent(&house, example).await;
        let text = reply.text();
        assert_eq!(
            reply.status.as_u16(),
            example.status,
            "{}: {text}",
            example.path
        );
    }
    for (method, path, _) in operations() {
        let known = EXAMPLES.iter().any(|example| example.is_of(&method, &path));
        assert!(known, "{method} {path} has no example");
    }
}

#[tokio::test]
async fn the_page_has_every_operation_schema_and_example_and_its_links_lead_somewhere() {
    let house = House::new();
    let request = Request::get("/api").header("host", "127.0.0.1:8123");
    let page = house.send(request.body(Body::empty()).unwrap()).await;
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    let document: Value = serde_json::from_str(openapi::text()).unwrap();
    for (method, path, _) in operations() {
        let summary = &document["paths"][&path][method.to_lowercase()]["summary"];
        for word in [&path, summary.as_str().unwrap()] {
            assert!(text.contains(word), "{method} {path}: {word}");
        }
    }
    // Where the type of each error leads.
    for (_, code, title) in CODES {
        let line = format!("<tr id=\"error-{code}\">");
        let found = text.split_once(&line).map(|(_, rest)| rest);
        assert!(found.is_some_and(|rest| rest.contains(title)), "{code}");
    }
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(text.contains(&format!("id=\"schema-{name}\"")), "{name}");
    }
    for example in EXAMPLES {
        let command = example.command(ADDRESS, false).replace('&', "&amp;");
        let command = command.replace('"', "&quot;").replace('>', "&gt;");
        assert!(text.contains(&command), "{command}");
    }
    let anchors: Vec<&str> = text.split("href=\"#").skip(1).collect();
    for anchor in anchors {
        let name = anchor.split('"').next().unwrap();
        let there = text.matches(&format!("id=\"{name}\"")).count();
        assert_eq!(there, 1, "#{name}");
    }
}

#[tokio::test]
async fn a_service_with_keys_shows_where_the_key_goes_and_strangers_may_read_it() {
    let house = House::new();
    set_key(&house, "boss", Role::Admin, None);
    let page = house.get("/api").await;
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(text.contains("Bearer $DEBORA_KEY"), "{text}");
    assert!(!text.contains("/admin"), "strangers see no way there");
}

/// Strangers may ask for it as often as they like: nothing is written or compressed for the next one.
#[tokio::test]
async fn the_page_is_written_and_compressed_once() {
    let house = House::new();
    let opened = async |token: Option<&str>, host: &str, encoding: &str| {
        let mut request = Request::get("/api")
            .header("host", host)
            .header("accept-encoding", encoding);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let page = house.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(page.status, 200, "{}", page.text());
        let coding = page.headers.get("content-encoding");
        assert_eq!(coding.is_some(), encoding == "gzip");
        page.bytes
    };
    for encoding in ["gzip", "identity"] {
        let pages = [
            opened(None, "localhost", encoding).await,
            opened(None, "localhost", encoding).await,
        ];
        assert_eq!(pages[0].as_ptr(), pages[1].as_ptr(), "{encoding}");
    }
    set_key(&house, "boss", Role::Admin, None);
    house.app.state.access.forget();
    for encoding in ["gzip", "identity"] {
        // Whatever they call the server.
        let [one, other] = [
            opened(None, "one.example", encoding).await,
            opened(None, "other.example", encoding).await,
        ];
        assert_eq!(one.as_ptr(), other.as_ptr(), "{encoding}");
    }
    let boss = opened(Some(&token("boss")), "debora.example", "identity").await;
    let text = String::from_utf8(boss.to_vec()).unwrap();
    assert!(
        text.contains("http://debora.example/v1/"),
        "as it was reached"
    );
    assert!(text.contains("href=\"/admin\"") && text.contains("boss"));
}

/// The requests of the shell examples in a text: path, and body if it is written out.
fn requests(text: &str) -> Vec<(String, Option<Value>)> {
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let pieces = blocks.flat_map(|block| block.split("curl ").collect::<Vec<_>>());
    let pieces: Vec<&str> = pieces.collect();
    pieces
        .windows(2)
        .filter_map(|pair| {
            let [before, command] = pair else {
                unreachable!()
            };
            let (_, rest) = command.split_once("http://127.0.0.1:8123")?;
            let end = rest.find(|sign: char| sign.is_whitespace() || "';".contains(sign));
            let path = rest[..end.unwrap_or(rest.len())].to_owned();
            let body = rest.split_once("--json '").map(|(_, body)| {
                let body = body.split('\'').next().unwrap();
                serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
            });
            // The body that `jq` writes stands before the command that sends it.
            let piped = rest.contains("--json @-").then(|| {
                let (_, object) = before.split_once("examples/live.toml '").unwrap();
                with_spec(object.split('\'').next().unwrap())
            });
            let body = body.or(piped);
            Some((path, body))
        })
        .collect()
}

#[test]
fn the_examples_of_the_documentation_are_those_of_the_page() {
    let asked = requests(include_str!("../../../docs/service.md"));
    assert!(asked.len() >= 9, "{asked:?}");
    for (path, body) in asked {
        let known = EXAMPLES
            .iter()
            .any(|example| example.path == path && (body.is_none() || self::body(example) == body));
        assert!(known, "{path} with {body:?} is not among the examples");
    }
}
