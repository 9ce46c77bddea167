//! One example for each operation, as a command that runs. Tests send every one of them, in this order, and hold the examples of
//! docs/service.md to them.

/// Where the examples of the documentation are sent.
pub const ADDRESS: &str = "http://127.0.0.1:8123";

/// What is sent.
pub enum ExampleBody {
    /// Nothing.
    None,
    /// This.
    Json(&'static str),
    /// The spec of `examples/live.toml`, with this id.
    Spec(&'static str),
}

/// A request.
pub struct Example {
    pub method: &'static str,
    /// With its query.
    pub path: &'static str,
    pub body: ExampleBody,
    /// What it is answered with.
    pub status: u16,
}

const fn get(path: &'static str) -> Example {
    Example {
        method: "GET",
        path,
        body: ExampleBody::None,
        status: 200,
    }
}

const fn post(path: &'static str, body: &'static str) -> Example {
    Example {
        method: "POST",
        path,
        body: ExampleBody::Json(body),
        status: 200,
    }
}

/// In an order in which each is answered as it says.
pub const EXAMPLES: &[Example] = &[
    get("/health"),
    get("/ready"),
    get("/metrics"),
    get("/openapi.json"),
    Example {
        method: "POST",
        path: "/v1/experiments",
        body: ExampleBody::Spec("trial"),
        status: 201,
    },
    get("/v1/experiments"),
    get("/v1/experiments/trial"),
    get("/v1/experiments/trial/seal"),
    get("/v1/experiments/trial/seal.html"),
    post(
        "/v1/experiments/trial/decisions",
        r#"{"n": 3, "request_key": "web-1-0001"}"#,
    ),
    post(
        "/v1/experiments/trial/outcomes",
        r#"[{"round": 1, "reward": 0, "costs": {"price": 0.001}},
    {"round": 2, "reward": 1, "costs": {"price": 0.001}}, {"round": 3, "reward": 1, "costs": {"price": 0.015}}]"#,
    ),
    get("/v1/experiments/trial/state"),
    get("/v1/experiments/trial/head"),
    post(
        "/v1/experiments/trial/publish",
        r#"{"where": "https://journal.example/42"}"#,
    ),
    get("/v1/experiments/trial/log?limit=3"),
    get("/v1/experiments/trial/log/download"),
    post(
        "/v1/experiments/trial/pause",
        r#"{"reason": "the price feed is down"}"#,
    ),
    post(
        "/v1/experiments/trial/resume",
        r#"{"reason": "prices are back"}"#,
    ),
    post(
        "/v1/experiments/trial/close",
        r#"{"reason": "the product was withdrawn"}"#,
    ),
    get("/v1/experiments/trial/certificate"),
    get("/v1/experiments/trial/certificate.html"),
    Example {
        status: 201,
        ..post(
            "/v1/keys",
            r#"{"name": "router", "role": "decide", "experiments": ["trial"]}"#,
        )
    },
    get("/v1/keys"),
    Example {
        body: ExampleBody::None,
        ..post("/v1/keys/router/revoke", "")
    },
];

impl Example {
    /// Whether it is one of this operation.
    pub fn is_of(&self, method: &str, template: &str) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let (mut parts, mut segments) = (template.split('/'), path.split('/'));
        let fits = parts.by_ref().all(|part| {
            let segment = segments.next();
            segment.is_some_and(|segment| part == segment || part.starts_with('{'))
        });
        self.method == method && fits && segments.next().is_none()
    }

    /// As it is typed.
    pub fn command(&self, address: &str, keyed: bool) -> String {
        let key = if keyed {
            " -H \"Authorization: Bearer $DEBORA_KEY\""
        } else {
            ""
        };
        // A question mark means something to a shell.
        let to = if self.path.contains('?') {
            format!("'{address}{}'", self.path)
        } else {
            format!("{address}{}", self.path)
        };
        match &self.body {
            ExampleBody::None if self.method == "GET" => format!("curl -s{key} {to}"),
            ExampleBody::None => format!("curl -s -X {}{key} {to}", self.method),
            ExampleBody::Json(body) => format!("curl -s{key} {to} --json '{body}'"),
            ExampleBody::Spec(id) => format!(
                "jq -n --rawfile spec examples/live.toml '{{id: \"{id}\", spec: $spec}}' |\n    curl -s{key} {to} --json @-"
            ),
        }
    }
}
