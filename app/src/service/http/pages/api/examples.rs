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
    /// This, with the spec of `examples/live.toml` for `$spec`.
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

const fn bodiless(path: &'static str) -> Example {
    Example {
        method: "POST",
        ..get(path)
    }
}

const fn with_spec(path: &'static str, body: &'static str) -> Example {
    Example {
        method: "POST",
        path,
        body: ExampleBody::Spec(body),
        status: 200,
    }
}

/// In an order in which each is answered as it says.
pub const EXAMPLES: &[Example] = &[
    get("/health"),
    get("/ready"),
    get("/metrics"),
    get("/openapi.json"),
    with_spec("/v1/plan", r#"{"spec": $spec, "gap": 0.05}"#),
    with_spec(
        "/v1/simulate",
        r#"{"spec": $spec, "pairs": 40, "means":
    {"small": {"quality": 0.5, "price": 0.001}, "large": {"quality": 0.75, "price": 0.015}}}"#,
    ),
    Example {
        status: 201,
        ..with_spec("/v1/experiments", r#"{"id": "trial", "spec": $spec}"#)
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
    post(
        "/ofrep/v1/evaluate/flags/trial",
        r#"{"context": {"targetingKey": "user-1"}}"#,
    ),
    post(
        "/ofrep/v1/evaluate/flags",
        r#"{"context": {"targetingKey": "user-1"}}"#,
    ),
    post(
        "/v1/experiments/trial/outcomes",
        r#"[{"request_key": "user-1", "reward": 1, "costs": {"price": 0.015}}]"#,
    ),
    get("/v1/experiments/trial/state"),
    get("/v1/experiments/trial/epochs?limit=3"),
    get("/v1/experiments/trial/epochs.csv"),
    get("/v1/experiments/trial/epochs/0"),
    get("/v1/experiments/trial/head"),
    post(
        "/v1/experiments/trial/publish",
        r#"{"where": "https://journal.example/42"}"#,
    ),
    get("/v1/experiments/trial/log?limit=3"),
    get("/v1/experiments/trial/log/download"),
    Example {
        status: 201,
        ..with_spec("/v1/experiments", r#"{"id": "trial-2", "spec": $spec}"#)
    },
    get("/v1/experiments/trial/diff?with=trial-2"),
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
    bodiless("/v1/keys/router/revoke"),
    Example {
        status: 201,
        ..post(
            "/v1/webhooks",
            r#"{"name": "ops", "url": "https://hooks.example/debora", "events": ["limit.exceeded", "experiment.done"]}"#,
        )
    },
    get("/v1/webhooks"),
    bodiless("/v1/webhooks/ops/test"),
    bodiless("/v1/webhooks/ops/remove"),
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
            ExampleBody::Spec(body) => format!(
                "jq -n --rawfile spec examples/live.toml '{body}' |\n    curl -s{key} {to} --json @-"
            ),
        }
    }
}
