//! What is read over HTTP: every route and page, by those who may and by those who may not.

use std::path::Path;

use axum::http::StatusCode;
use debora_cli::service::http::pages;
use debora_cli::service::http::routes::INTERFACE;
use serde_json::json;

use crate::golden::{Goldens, plain};
use crate::house::{Answer, House, Question};
use crate::live::{BOSS, OWNER, READER};

/// Whose key the service never made.
const STRANGER: &str = "stranger";

/// More looks than there are experiments: each look at many makes one summary at least, however slow the machine is.
const LOOKS: u64 = 24;

/// Read in every way that there is.
const RICH: [&str; 3] = ["soft", "hard", "names"];

/// Of these only what there is to see at a glance.
const OTHERS: [&str; 15] = [
    "team-a",
    "team-b",
    "team-c",
    "committed",
    "exploring",
    "just-created",
    "waiting",
    "overtime",
    "late",
    "infeasible",
    "broken",
    "uneven",
    "paused",
    "closed",
    "done",
];

/// What is read of each.
const GLANCES: [&str; 3] = [
    "/v1/experiments/*",
    "/v1/experiments/*/state",
    "/experiments/*",
];

/// What is read of the rich ones besides.
const LOOKED_AT: [&str; 27] = [
    "/v1/experiments/*/head",
    "/v1/experiments/*/epochs",
    "/v1/experiments/*/epochs.csv",
    "/v1/experiments/*/epochs/0",
    "/v1/experiments/*/epochs/1",
    "/v1/experiments/*/log?limit=3",
    "/v1/experiments/*/certificate",
    "/v1/experiments/*/certificate.html",
    "/v1/experiments/*/seal",
    "/v1/experiments/*/seal.html",
    "/v1/experiments/*/diff?with=team-a",
    "/experiments/*/epochs",
    "/experiments/*/epochs/0",
    "/experiments/*/epochs/1",
    "/experiments/*/figures/strategy.csv",
    "/experiments/*/figures/strategy.json",
    "/experiments/*/figures/means.csv",
    "/experiments/*/figures/means.json",
    "/experiments/*/figures/limits.csv",
    "/experiments/*/figures/limits.json",
    "/experiments/*/figures/counts.csv",
    "/experiments/*/figures/counts.json",
    "/experiments/*/report.html",
    "/experiments/*/certificate",
    "/experiments/*/seal",
    "/experiments/*/audit",
    "/experiments/*/diff",
];

/// What is read once.
const ONCE: [&str; 35] = [
    "/",
    "/?sort=-progress",
    "/?q=rout&state=running",
    "/?alerts=on",
    "/?state=nonsense",
    "/?before=late",
    "/new",
    "/api",
    "/login",
    "/admin",
    "/admin/keys",
    "/admin/webhooks",
    "/v1/experiments?limit=3",
    "/v1/experiments?limit=3&after=exploring",
    "/v1/experiments?limit=0",
    "/v1/keys",
    "/v1/webhooks",
    "/health",
    "/ready",
    "/v1/experiments/done/log/download",
    "/v1/experiments/done/certificate",
    "/v1/experiments/done/certificate.html",
    "/v1/experiments/done/epochs/3",
    "/v1/experiments/closed/certificate",
    "/experiments/done/certificate",
    "/experiments/done/report.html",
    "/v1/experiments/team-a/diff?with=team-b",
    "/v1/experiments/team-a/diff?with=team-c",
    "/experiments/team-a/diff?with=team-b",
    "/experiments/team-a/diff?with=team-c",
    "/v1/experiments/infeasible/epochs/3",
    "/experiments/infeasible/epochs/3",
    "/experiments/committed/epochs/1",
    "/experiments/soft/figures/nonsense.csv",
    "/experiments/soft/epochs/99",
];

/// Asks for what is nowhere, or not for everyone.
const REFUSED: [(&str, &str); 13] = [
    ("", "/"),
    ("", "/login"),
    ("", "/experiments/soft"),
    ("", "/v1/experiments"),
    (STRANGER, "/v1/experiments/soft/state"),
    (BOSS, "/nowhere"),
    (BOSS, "/v1/nowhere"),
    (BOSS, "/experiments/nowhere"),
    (BOSS, "/v1/experiments/nowhere/state"),
    (BOSS, "/v1/experiments/No%20Id/state"),
    (READER, "/new"),
    (READER, "/v1/keys"),
    (OWNER, "/metrics"),
];

/// Asks, and keeps the answer under a name made of the path and this.
pub async fn keep(
    house: &House,
    goldens: &mut Goldens,
    question: &Question<'_>,
    name: &str,
) -> Answer {
    let answer = house.ask(question).await;
    let name = plain(&format!("{} {name}", question.name()));
    goldens.keep(&format!("{name}.txt"), house.told(&answer));
    answer
}

/// Before there is anything.
pub async fn of_an_empty_store(house: &House, goldens: &mut Goldens) {
    for path in [
        "/",
        "/v1/experiments",
        "/metrics",
        "/admin",
        "/admin/keys",
        "/v1/keys",
    ] {
        let asked = Question::get(path, "").with("accept", "text/html");
        keep(house, goldens, &asked, "empty").await;
    }
}

/// All of it.
pub async fn all(house: &House, goldens: &mut Goldens) {
    // Of a list and of the metrics a part is made at each look.
    for _ in 0..LOOKS {
        house.ask(&Question::get("/metrics", BOSS)).await;
        house.ask(&Question::get("/", BOSS)).await;
        house.wait(10_000).await;
    }
    keep(house, goldens, &Question::get("/metrics", BOSS), "").await;
    let accept = "application/openmetrics-text";
    keep(
        house,
        goldens,
        &Question::get("/metrics", BOSS).with("accept", accept),
        "open",
    )
    .await;
    for path in ONCE {
        let asked = Question::get(path, BOSS).with("accept", "text/html");
        keep(house, goldens, &asked, "").await;
    }
    for id in RICH.iter().chain(&OTHERS) {
        let more = LOOKED_AT.iter().filter(|_| RICH.contains(id));
        for path in GLANCES.iter().chain(more) {
            keep(
                house,
                goldens,
                &Question::get(&path.replace('*', id), BOSS),
                "",
            )
            .await;
        }
    }
    house.note_key(STRANGER, &format!("debora_{}", "0".repeat(64)));
    for (who, path) in REFUSED {
        let asked = Question::get(path, who).with("accept", "text/html");
        let who = if who.is_empty() { "nobody" } else { who };
        keep(house, goldens, &asked, &format!("by {who}")).await;
    }
    for path in ["/", "/experiments/soft", "/v1/experiments/soft/log?limit=1"] {
        keep(house, goldens, &Question::get(path, READER), READER).await;
    }
    for path in ["/", "/new", "/experiments/team-a"] {
        keep(house, goldens, &Question::get(path, OWNER), OWNER).await;
    }
    of_files(house, goldens).await;
    of_plans(house, goldens).await;
    of_forms(house, goldens).await;
}

/// Files of this tree are not kept twice.
async fn of_files(house: &House, goldens: &mut Goldens) {
    let openapi = house.ask(&Question::get("/openapi.json", BOSS)).await;
    let app = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: &str| std::fs::read_to_string(app.join(path)).expect("a file");
    assert!(openapi.text() == text("openapi.json"));
    goldens.keep("openapi-json.txt", house.told_without_body(&openapi));
    for (name, sources) in [
        ("debora.js", &["assets/debora.js"][..]),
        ("new.js", &["assets/new.js"]),
        ("debora.css", &["assets/figures.css", "assets/debora.css"]),
    ] {
        let asset = house
            .ask(&Question::get(&format!("/assets/{name}"), ""))
            .await;
        let sources: String = sources.iter().map(|source| text(source)).collect();
        assert!(asset.text() == sources, "{name}");
        goldens.keep(
            &format!("assets-{}.txt", plain(name)),
            house.told_without_body(&asset),
        );
    }
}

/// Plans and simulations before there is an experiment.
async fn of_plans(house: &House, goldens: &mut Goldens) {
    for (name, spec, gap) in [
        ("routing", ROUTING, json!(0.01)),
        ("blind", BLIND, json!(null)),
        ("unread", "policy = 'soft'\nhorizn = 3", json!(null)),
    ] {
        let mut body = json!({ "spec": spec });
        if gap.is_number() {
            body["gap"] = gap;
        }
        keep(
            house,
            goldens,
            &Question::post("/v1/plan", BOSS, &body),
            name,
        )
        .await;
    }
    let means = json!({ "small": { "quality": 0.6, "price": 0.004 }, "large": { "quality": 0.8, "price": 0.012 } });
    let body = json!({ "spec": ROUTING, "means": means, "pairs": 8 });
    keep(
        house,
        goldens,
        &Question::post("/v1/simulate", BOSS, &body),
        "routing",
    )
    .await;
}

const ROUTING: &str = r#"name = "model routing"
policy = "soft"   # of three
horizon = 1e6
rho = 0.3
actions = ["small", "large"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.008
"#;

const BLIND: &str = "policy = 'free'\nhorizon = 200\nrho = 0.3\nactions = 3\n";

/// A spec in which the form shows every kind of field, and one with a fault in nearly each.
const FULL: &str = r#"name = "everything"
policy = "hard"
horizon = 1e6
rho = 0.3
delta = 0.05
profile = "tight"
growth = 4
outside = "clip"
actions = ["small", "large"]
[reward]
name = "quality"
range = [-1, 1]
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.008
[[cost]]
name = "delay"
threshold = 0.5
[safe]
strategy = { small = 1.0 }
cost = { price = 0.002, delay = 0.1 }
[service]
on_wait = "serve"
outcome_wait = "12h"
impute = { reward = 0.0, cost = { price = 0.01 } }
holdback = { share = 0.05, action = "small" }
"#;

const FAULTY: &str = r#"name = 3
policy = "sift"
horizon = 0.5
rho = 7
delta = "x"
actions = ["small", "small"]
nonsense = 1
[reward]
range = [1, 0]
[[cost]]
threshold = 5
[service]
on_wait = "sleep"
outcome_wait = "soon"
"#;

/// The form in which an experiment is written: each button, and each way in which form and text differ.
async fn of_forms(house: &House, goldens: &mut Goldens) {
    let spec = |spec: &'static str| ("spec", spec);
    let was = |spec: &'static str| ("was", spec);
    for (name, fields) in [
        ("routing", vec![spec(ROUTING)]),
        ("full", vec![spec(FULL)]),
        ("faulty", vec![spec(FAULTY)]),
        ("blind", vec![spec(BLIND)]),
        ("no toml", vec![spec("policy = [")]),
        ("empty", vec![spec("")]),
        ("add action", vec![spec(FULL), ("do", "add-action")]),
        ("remove action", vec![spec(FULL), ("do", "remove-action-0")]),
        ("add cost", vec![spec(ROUTING), ("do", "add-cost")]),
        ("remove cost", vec![spec(FULL), ("do", "remove-cost-1")]),
        ("remedy", vec![spec(BLIND), ("do", "remedy")]),
        (
            "typed",
            vec![
                spec(ROUTING),
                was(ROUTING),
                ("horizon", "2e6"),
                ("cost.0.threshold", "0.01"),
                ("actions.0", "tiny"),
                ("service.outcome_wait", "2h"),
                ("service.holdback.share", "0.05"),
                ("service.holdback.action", "tiny"),
                ("delta", ""),
            ],
        ),
        (
            "typed wrongly",
            vec![
                spec(FULL),
                was(FULL),
                ("horizon", "many"),
                ("rho", "2"),
                ("cost.0.threshold", ""),
                ("actions.1", "small"),
                ("service.outcome_wait", "soon"),
                ("service.holdback.share", ""),
                ("policy", "free"),
            ],
        ),
        (
            "typed by name",
            vec![
                spec(FULL),
                was(FULL),
                ("safe.strategy.0", "0.5"),
                ("safe.strategy.1", "0.5"),
                ("safe.cost.1", "0.2"),
                ("service.impute.cost.1", "0.3"),
                ("service.impute.reward", ""),
                ("actions.1", "huge"),
                ("cost.0.name", "dollars"),
                ("cost.0.range.1", "0.03"),
                ("cost.1.mean.0", "0.1"),
            ],
        ),
        (
            "typed beside what is no toml",
            vec![
                spec("policy = ["),
                was(FULL),
                ("horizon", "2e6"),
                ("actions.0", "tiny"),
                ("cost.0.range.0", ""),
            ],
        ),
        (
            "safe no longer",
            vec![spec(FULL), was(FULL), ("policy", "soft")],
        ),
        (
            "simulated",
            vec![
                spec(ROUTING),
                ("mean.0.0", "0.6"),
                ("mean.0.1", "0.004"),
                ("mean.1.0", "0.9"),
                ("mean.1.1", "0.012"),
                ("do", "simulate"),
            ],
        ),
    ] {
        let form = Question::form("/new/draft", BOSS, &fields);
        keep(house, goldens, &form, name).await;
    }
    let taken = [spec(ROUTING), ("id", "soft"), ("do", "create")];
    keep(
        house,
        goldens,
        &Question::form("/new", BOSS, &taken),
        "taken",
    )
    .await;
    let created = [spec(ROUTING), ("id", "by-form"), ("do", "create")];
    keep(
        house,
        goldens,
        &Question::form("/new", BOSS, &created),
        "created",
    )
    .await;
    keep(
        house,
        goldens,
        &Question::form("/experiments/by-form/pause", BOSS, &[("reason", "")]),
        "",
    )
    .await;
    keep(
        house,
        goldens,
        &Question::form("/experiments/by-form/close", BOSS, &[("confirm", "no")]),
        "",
    )
    .await;
    keep(
        house,
        goldens,
        &Question::form("/login", "", &[("key", "debora_wrong")]),
        "wrong",
    )
    .await;
}

/// A route that is read must be read here, too.
pub async fn every_route_is_kept(house: &House, goldens: &Goldens) {
    let described = INTERFACE.iter().filter(|(method, _)| *method == "get");
    let mut routes: Vec<&str> = described.map(|(_, path)| *path).collect();
    for (path, _) in pages::routes() {
        // A router cannot be asked which methods it has.
        let answer = house.ask(&Question::get(path, BOSS)).await;
        if answer.status != StatusCode::METHOD_NOT_ALLOWED {
            routes.push(path);
        }
    }
    let asked = |text: &str| {
        let path = text.strip_prefix("GET ")?.split([' ', '?']).next()?;
        Some(path.to_owned())
    };
    let kept: Vec<String> = goldens.said().filter_map(|(_, text)| asked(text)).collect();
    for route in routes {
        assert!(
            kept.iter().any(|path| fits(route, path)),
            "{route} is not kept"
        );
    }
}

fn fits(route: &str, path: &str) -> bool {
    let (parts, segments) = (route.split('/'), path.split('/'));
    parts.clone().count() == segments.clone().count()
        && parts
            .zip(segments)
            .all(|(part, segment)| part == segment || part.starts_with('{'))
}
