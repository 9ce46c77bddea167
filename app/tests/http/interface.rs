//! The description of the interface is the interface.

use axum::body::Body;
use axum::http::{Method, Request};
use debora_cli::service::http::{openapi, routes};
use serde_json::{Value, json};

use crate::{House, SHORT, outcomes, short_with};

fn document() -> Value {
    serde_json::from_str(openapi::text()).unwrap()
}

/// Written anew by `DEBORA_OPENAPI=1 cargo test --test http`, so that a change shows in the diff. What is served was compiled in
/// before, so that another test may fail until the next run.
#[test]
fn the_description_is_the_one_that_is_kept() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    if std::env::var_os("DEBORA_OPENAPI").is_some() {
        std::fs::write(path, openapi::text()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == openapi::text(),
        "{path} differs; DEBORA_OPENAPI=1 writes it anew"
    );
    assert_eq!(document()["openapi"], "3.1.0");
}

#[test]
fn each_route_is_described_where_it_is_served() {
    let document = document();
    let mut described = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        described.extend(methods.map(|method| (method.as_str(), path.as_str())));
    }
    let mut served = routes::INTERFACE.to_vec();
    // By path, as the document is.
    served.sort_by_key(|&(method, path)| (path, method));
    assert_eq!(served, described);
}

#[tokio::test]
async fn every_documented_route_is_there_and_takes_no_other_method() {
    let house = House::new();
    house.create("e", SHORT).await;
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    // Without printing both: they are long.
    assert!(
        house.get("/openapi.json").await.json() == document,
        "the file is not what the handlers say; write it anew, and build again"
    );
    for (path, item) in paths {
        let documented: Vec<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
            .collect();
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            let request = Request::builder().method(&method).uri(
                path.replace("{id}", "e")
                    .replace("{epoch}", "0")
                    .replace("{name}", "ann"),
            );
            let reply = house.send(request.body(Body::empty()).unwrap()).await;
            if documented.contains(&method.to_string()) {
                // There may be no key of that name, but there is the route.
                let found = reply.status != 405 && !reply.text().contains("\"no_route\"");
                assert!(found, "{method} {path}: {}", reply.text());
            } else {
                reply.refused(405, "method");
                let allow = reply.headers["allow"]
                    .to_str()
                    .unwrap()
                    .replace(",HEAD", "")
                    .replace("HEAD,", "");
                let mut allowed: Vec<&str> = allow.split(',').collect();
                allowed.sort_unstable();
                assert_eq!(allowed, documented, "{path}");
            }
        }
    }
}

/// Where a value departs from a schema of the document: fields that are missing, or not described, or of another type.
fn faults(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = document
            .pointer(name.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{name} leads nowhere"));
        return faults(document, target, value, place);
    }
    let parts = |key: &str| schema[key].as_array().cloned().unwrap_or_default();
    let (all, one) = (parts("allOf"), parts("oneOf"));
    if !one.is_empty() {
        let tried: Vec<Vec<String>> = one
            .iter()
            .map(|schema| faults(document, schema, value, place))
            .collect();
        return if tried.iter().any(Vec::is_empty) {
            Vec::new()
        } else {
            tried.concat()
        };
    }
    let mut found = Vec::new();
    let types = match &schema["type"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
        _ => Vec::new(),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |name: &String| name == kind || (name == "number" && kind == "integer");
    if !types.is_empty() && !types.iter().any(fits) {
        found.push(format!("{place} is {value}, not {types:?}"));
    }
    let objects: Vec<&Value> = all
        .iter()
        .chain([schema])
        .map(|part| resolved(document, part))
        .collect();
    let described = |name: &str| objects.iter().find_map(|part| part["properties"].get(name));
    let open = objects.iter().all(|part| part["properties"].is_null());
    for (name, field) in value.as_object().into_iter().flatten() {
        match described(name).or(schema.get("additionalProperties").filter(|_| open)) {
            Some(inner) => found.extend(faults(document, inner, field, &format!("{place}.{name}"))),
            None if open => {}
            None => found.push(format!("{place}.{name} is not described")),
        }
    }
    for name in objects
        .iter()
        .flat_map(|part| part["required"].as_array().into_iter().flatten())
    {
        if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
            found.push(format!("{place}.{name} is missing"));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(
            document,
            &schema["items"],
            item,
            &format!("{place}[{index}]"),
        ));
    }
    found
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    schema["$ref"].as_str().map_or(schema, |name| {
        document.pointer(name.trim_start_matches('#')).unwrap()
    })
}

#[tokio::test]
async fn answers_are_as_they_are_described() {
    let house = House::new();
    house.create("e", &short_with("on_wait = 'serve'")).await;
    let document = document();
    let check = |path: &str, method: &str, reply: &crate::Reply| {
        let status = reply.status.as_u16().to_string();
        let response = &document["paths"][path][method]["responses"][&status];
        assert!(
            !response.is_null(),
            "{method} {path} answers {status}, which is not described: {}",
            reply.text()
        );
        // As it is declared, too.
        let kind = reply.headers["content-type"].to_str().unwrap();
        let schema = &response["content"][kind]["schema"];
        assert!(!schema.is_null(), "{method} {path} {status}: {kind}");
        let found = faults(&document, schema, &reply.json(), "answer");
        assert!(found.is_empty(), "{method} {path} {status}: {found:#?}");
    };
    let id = "/v1/experiments/{id}";
    let mut decided = json!(null);
    for n in [1, 0, 8, 8] {
        let reply = house
            .post("/v1/experiments/e/decisions", &json!({ "n": n }))
            .await;
        check(&format!("{id}/decisions"), "post", &reply);
        if reply.status == 200 && reply.json()["overtime"] == false {
            decided = reply.json();
        }
    }
    let told = house
        .post("/v1/experiments/e/outcomes", &outcomes(&decided, 1.0, 0.01))
        .await;
    check(&format!("{id}/outcomes"), "post", &told);
    for path in ["", "/state", "/certificate", "/epochs", "/epochs/{epoch}"] {
        for experiment in ["e", "none"] {
            let address = format!("/v1/experiments/{experiment}{path}");
            let reply = house.get(&address.replace("{epoch}", "1")).await;
            check(&format!("{id}{path}"), "get", &reply);
        }
    }
    check(
        "/v1/experiments",
        "get",
        &house.get("/v1/experiments").await,
    );
    let body = json!({ "spec": SHORT, "id": "f", "blind": true });
    for _ in 0..2 {
        check(
            "/v1/experiments",
            "post",
            &house.post("/v1/experiments", &body).await,
        );
    }
    for change in ["pause", "resume", "close", "pause"] {
        let reply = house
            .post_text(&format!("/v1/experiments/e/{change}"), "")
            .await;
        check(&format!("{id}/{change}"), "post", &reply);
    }
    check(
        &format!("{id}/certificate"),
        "get",
        &house.get("/v1/experiments/e/certificate").await,
    );
    check("/health", "get", &house.get("/health").await);
    check("/openapi.json", "get", &house.get("/openapi.json").await);
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let house = House::new();
    house.create("e", SHORT).await;
    let ask = json!({ "n": 1, "request_key": "once" });
    for _ in 0..2 {
        let decided = house
            .post("/v1/experiments/e/decisions", &ask)
            .await
            .expect(200);
        house.tell("e", &outcomes(&decided, 1.0, 0.01)).await;
    }
    house.get("/v1/secret?token=debora_x").await;
    let text = house.get("/metrics").await.text();
    for line in [
        "debora_decisions_total{kind=\"round\"} 1",
        "debora_outcomes_total{receipt=\"recorded\"} 1",
        "debora_outcomes_total{receipt=\"repeated\"} 1",
        "debora_requests_total{method=\"POST\",route=\"/v1/experiments/{id}/outcomes\",status=\"200\"} 2",
        "debora_requests_total{method=\"GET\",route=\"other\",status=\"404\"} 1",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    assert!(!text.contains("secret"), "{text}");
}
