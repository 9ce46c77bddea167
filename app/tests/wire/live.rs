//! The experiments: one of every policy and state, told what a fixed world gives.

use debora::WorldKey;
use debora::key::Label;
use serde_json::{Value, json};

use crate::golden::Goldens;
use crate::house::{Answer, House, Question};
use crate::routes::keep;

/// The key of all experiments.
const KEY: &str = "70000000000000000000000000000007";

/// Who administers.
pub const BOSS: &str = "boss";

/// Who reads.
pub const READER: &str = "reader";

/// Who may do everything with one experiment.
pub const OWNER: &str = "owner@example.com";

/// Early estimates: large budgets, and counts that double.
const EARLY: &str = "rho = 0.9\ndelta = 0.9\ngrowth = 2\n";

const PRICE: &str =
    "[reward]\nname = 'quality'\n[[cost]]\nname = 'price'\nrange = [0.0, 0.02]\nthreshold = 0.01\n";

/// The second limit of an experiment.
const DELAY: &str = "[[cost]]\nname = 'delay, seconds'\nrange = [0.0, 10.0]\nthreshold = 6.5\n";

const SAFE: &str = "[safe]\nstrategy = { left = 1.0 }\ncost = { price = 0.003 }\n";

/// Two actions and a price.
fn priced(policy: &str, horizon: u64, more: &str) -> String {
    format!(
        "policy = '{policy}'\nhorizon = {horizon}\n{EARLY}actions = ['left', 'right']\n{PRICE}{more}"
    )
}

/// Epochs of 1, 2, 4 .. rounds, as profile paper doubles from one on.
fn short(more: &str) -> String {
    format!(
        "name = 'short epochs'\npolicy = 'soft'\nhorizon = 64\nrho = 0.9\ndelta = 0.1\nprofile = 'paper'\n\
         actions = ['left', 'right']\n{PRICE}{more}"
    )
}

/// Estimates after 54 rounds of each action, and again after 108.
const TEAM: &str = "name = 'one of two teams'\npolicy = 'free'\nhorizon = 260\nrho = 0.99\ndelta = 0.9\ngrowth = 2\n\
    actions = ['a', 'b']\n";

/// Names that pages and tables must write with care.
const NAMES: &str = "name = '<b>Müller & \"Söhne\"</b>'\npolicy = 'soft'\nhorizon = 3_000\nrho = 0.9\ndelta = 0.9\n\
    growth = 2\nactions = ['<script>alert(1)</script>', '=1+1, \"quoted\"', 'größe', 'd']\n\
    [reward]\nname = 'a & b'\nrange = [-1.0, 3.0]\n[[cost]]\nname = '<i>cost</i>'\nthreshold = 0.9\n";

/// What each action gives on average, as shares of the ranges: the reward first, then the costs.
type World = &'static [&'static [f64]];

const BETTER_IS_DEARER: World = &[&[0.2, 0.1, 0.2], &[0.5, 0.4, 0.4], &[0.9, 0.9, 0.8]];
const ALL_TOO_DEAR: World = &[&[0.2, 0.85], &[0.9, 0.95]];
const LEFT_IS_BETTER: World = &[&[0.9, 0.2], &[0.1, 0.4]];
const RIGHT_IS_BETTER: World = &[&[0.1, 0.2], &[0.9, 0.4]];

/// An experiment that is played: its id, what is true of it, and the largest value of each cost.
struct Live<'a> {
    house: &'a House,
    id: &'static str,
    world: World,
    costs: &'static [(&'static str, f64)],
}

const NO_COST: &[(&str, f64)] = &[];
const ONE_COST: &[(&str, f64)] = &[("price", 0.02)];
const TWO_COSTS: &[(&str, f64)] = &[("price", 0.02), ("delay, seconds", 10.0)];

impl<'a> Live<'a> {
    /// Creates it.
    async fn begin(
        house: &'a House,
        id: &'static str,
        spec: &str,
        world: World,
        costs: &'static [(&'static str, f64)],
    ) -> Self {
        let body = json!({ "spec": spec, "id": id, "key": KEY, "blind": true });
        let answer = house
            .ask(&Question::post("/v1/experiments", BOSS, &body))
            .await;
        assert!(answer.status.is_success(), "{id}: {}", answer.text());
        house.wait(60_000).await;
        Self {
            house,
            id,
            world,
            costs,
        }
    }

    async fn post(&self, what: &str, body: &Value) -> Answer {
        let path = format!("/v1/experiments/{}/{what}", self.id);
        self.house.ask(&Question::post(&path, BOSS, body)).await
    }

    async fn state(&self) -> Value {
        let path = format!("/v1/experiments/{}/state", self.id);
        self.house.ask(&Question::get(&path, BOSS)).await.json()
    }

    /// What the world gives for a decision, and whose it is.
    fn outcome(&self, decision: &Value) -> Value {
        let action = decision["action"].as_u64().expect("a number");
        let mut outcome = json!({});
        let mut draw = 0;
        for kind in ["round", "overtime", "holdback"] {
            if let Some(number) = decision[kind].as_u64() {
                outcome[kind] = number.into();
                draw = number;
            }
        }
        if decision["round"].is_null() {
            outcome["epoch"] = decision["epoch"].clone();
        }
        let means = self.world[action as usize];
        let given = |quantity: usize| {
            let indices = [action, draw, quantity as u64];
            let uniform = WorldKey::from(5u64).uniform(Label::Feedback, indices);
            f64::from(u8::from(uniform < means[quantity]))
        };
        outcome["reward"] = given(0).into();
        let costs = self.costs.iter().enumerate();
        outcome["costs"] = costs
            .map(|(cost, (name, most))| (*name, most * given(cost + 1)))
            .collect();
        outcome
    }

    /// Tells what came of decisions, of those that this is true of.
    async fn tell(&self, decisions: &Value, told: impl Fn(&Value) -> bool) -> Answer {
        let decisions = decisions["decisions"].as_array().expect("decisions");
        let told = decisions.iter().filter(|decision| told(decision));
        let outcomes: Value = told.map(|decision| self.outcome(decision)).collect();
        self.post("outcomes", &outcomes).await
    }

    /// Leaves an epoch of several rounds decided, and waiting for all of its outcomes.
    async fn until_many(&self) -> Value {
        loop {
            let decided = self.post("decisions", &json!({ "n": 64 })).await.json();
            let many = decided["decisions"]
                .as_array()
                .is_some_and(|decisions| decisions.len() >= 4);
            if many {
                return decided;
            }
            self.tell(&decided, |_| true).await;
        }
    }

    /// Asks and tells this many rounds, or to the end, ten minutes after each other. Requests have keys of their own if they
    /// are to be held back or not.
    async fn play(&self, rounds: u64, at_once: u64, told: impl Fn(&Value) -> bool + Copy) {
        for request in 0.. {
            let state = self.state().await;
            let decided = state["decided"].as_u64().expect("a number");
            if decided >= rounds || state["status"] != "running" {
                break;
            }
            let n = at_once.min(rounds - decided);
            let body = if state["holdback"].is_null() {
                json!({ "n": n })
            } else {
                json!({ "n": n, "request_key": format!("user-{request}") })
            };
            let answer = self.post("decisions", &body).await;
            assert_eq!(answer.status, 200, "{}: {}", self.id, answer.text());
            self.tell(&answer.json(), told).await;
            self.house.wait(600_000).await;
        }
    }
}

/// Makes everything, and keeps what requests were answered on the way.
pub async fn play(house: &House, goldens: &mut Goldens) {
    make_keys(house, goldens).await;
    teams(house, goldens).await;
    policies(house).await;
    waiting(house, goldens).await;
    troubles(house).await;
    endings(house, goldens).await;
    flags(house, goldens).await;
}

async fn make_keys(house: &House, goldens: &mut Goldens) {
    for (name, role, experiments) in [
        (BOSS, "admin", json!(null)),
        (READER, "read", json!(null)),
        (OWNER, "admin", json!(["team-a", "not-there-yet"])),
        ("revoked", "decide", json!(null)),
    ] {
        let body = match experiments {
            Value::Null => json!({ "name": name, "role": role }),
            experiments => json!({ "name": name, "role": role, "experiments": experiments }),
        };
        let asked = if name == BOSS { "" } else { BOSS };
        let made = keep(
            house,
            goldens,
            &Question::post("/v1/keys", asked, &body),
            name,
        )
        .await;
        house.note_key(name, made.json()["key"].as_str().expect("a key"));
        house.wait(10_000).await;
    }
    let revoke = Question::post("/v1/keys/revoked/revoke", BOSS, &json!({}));
    keep(house, goldens, &revoke, "").await;
    let webhook = json!({ "name": "chat", "url": "https://hooks.example.com/services/secret", "format": "slack",
        "events": ["experiment.done", "limit.exceeded"], "wait_seconds": 900 });
    keep(
        house,
        goldens,
        &Question::post("/v1/webhooks", BOSS, &webhook),
        "chat",
    )
    .await;
    let webhook =
        json!({ "name": "own", "url": "http://127.0.0.1:9/debora", "experiments": ["team-a"] });
    keep(
        house,
        goldens,
        &Question::post("/v1/webhooks", BOSS, &webhook),
        "own",
    )
    .await;
}

/// Three with one key and spec, of which two come to other estimates and one is under way.
async fn teams(house: &House, goldens: &mut Goldens) {
    let path = "/v1/experiments";
    for (name, id, spec) in [
        ("created", "team-a", TEAM),
        ("repeated", "team-a", TEAM),
        ("blind", "not-there-yet", &*short("")),
        ("out of scope", "mine", TEAM),
    ] {
        let body = json!({ "spec": spec, "id": id, "key": KEY });
        keep(house, goldens, &Question::post(path, OWNER, &body), name).await;
    }
    for (id, world, rounds) in [
        ("team-a", LEFT_IS_BETTER, 260),
        ("team-b", RIGHT_IS_BETTER, 260),
        ("team-c", LEFT_IS_BETTER, 140),
    ] {
        let live = Live::begin(house, id, TEAM, world, NO_COST).await;
        live.play(rounds, 60, |_| true).await;
    }
}

/// Each policy on its way: exploring, tracking limits, safe, and committed to one action.
async fn policies(house: &House) {
    let spec = "name = 'which model answers'\npolicy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = 2\n";
    let free = Live::begin(house, "committed", spec, &[&[0.0], &[1.0]], NO_COST).await;
    free.play(8_000, 2_000, |_| true).await;
    assert_eq!(free.state().await["kind"], "commit");

    let spec = format!(
        "name = 'routing'\npolicy = 'soft'\nhorizon = 8_000\n{EARLY}actions = ['small', 'medium', 'large']\n{PRICE}{DELAY}\
         [service]\non_wait = 'serve'\noutcome_wait = '1h'\nholdback = {{ share = 0.2, action = 'small' }}\n"
    );
    let soft = Live::begin(house, "soft", &spec, BETTER_IS_DEARER, TWO_COSTS).await;
    // Now and then an outcome is never told, and what is outstanding at the end of an epoch is waited for.
    soft.play(5_000, 200, |decision| {
        decision["round"]
            .as_u64()
            .is_none_or(|round| round % 97 != 0)
    })
    .await;

    let spec = priced("hard", 6_000, SAFE);
    let hard = Live::begin(house, "hard", &spec, BETTER_IS_DEARER, ONE_COST).await;
    hard.play(3_500, 500, |_| true).await;

    let soft = Live::begin(
        house,
        "exploring",
        &priced("soft", 6_000, ""),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    soft.play(300, 100, |_| true).await;
    Live::begin(
        house,
        "just-created",
        &priced("soft", 1_000_000, ""),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    let names = Live::begin(
        house,
        "names",
        NAMES,
        &[&[0.2, 0.1], &[0.3, 0.2], &[0.4, 0.4], &[0.5, 0.6]],
        &[("<i>cost</i>", 1.0)],
    )
    .await;
    names.play(1_500, 500, |_| true).await;
}

/// Epochs that wait: held, served overtime, and with outcomes that come too late.
async fn waiting(house: &House, goldens: &mut Goldens) {
    let held = Live::begin(house, "waiting", &short(""), BETTER_IS_DEARER, ONE_COST).await;
    held.until_many().await;
    let path = "/v1/experiments/waiting/decisions";
    keep(
        house,
        goldens,
        &Question::post(path, BOSS, &json!({ "n": 1 })),
        "waiting",
    )
    .await;

    let served = Live::begin(
        house,
        "overtime",
        &short("[service]\non_wait = 'serve'\n"),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    served.until_many().await;
    let path = "/v1/experiments/overtime/decisions";
    let overtime = keep(
        house,
        goldens,
        &Question::post(path, BOSS, &json!({ "n": 3 })),
        "overtime",
    )
    .await;
    let told = served
        .tell(&overtime.json(), |decision| decision["overtime"] != 2)
        .await;
    goldens.keep("post-overtime-outcomes.txt", house.told(&told));

    let late = Live::begin(
        house,
        "late",
        &short("[service]\noutcome_wait = '10m'\n"),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    let decided = late.until_many().await;
    house.wait(700_000).await;
    let told = late
        .tell(&decided, |decision| {
            decision["round"]
                .as_u64()
                .is_some_and(|round| round % 3 != 0)
        })
        .await;
    goldens.keep("post-late-outcomes.txt", house.told(&told));
    late.play(40, 64, |_| true).await;
}

/// What somebody should look into.
async fn troubles(house: &House) {
    let dear = Live::begin(
        house,
        "infeasible",
        &priced("soft", 6_000, ""),
        ALL_TOO_DEAR,
        ONE_COST,
    )
    .await;
    dear.play(4_000, 500, |_| true).await;
    let broken = Live::begin(
        house,
        "broken",
        &priced("hard", 6_000, SAFE),
        ALL_TOO_DEAR,
        ONE_COST,
    )
    .await;
    broken.play(2_500, 500, |_| true).await;
    let spec = priced(
        "soft",
        6_000,
        "[service]\noutcome_wait = '10m'\nimpute = { reward = 0.5 }\n",
    );
    let uneven = Live::begin(house, "uneven", &spec, BETTER_IS_DEARER, ONE_COST).await;
    uneven
        .play(2_000, 500, |decision| {
            decision["action"] == 0
                || decision["round"]
                    .as_u64()
                    .is_none_or(|round| round % 5 != 0)
        })
        .await;
}

/// Paused, closed and done.
async fn endings(house: &House, goldens: &mut Goldens) {
    let paused = Live::begin(
        house,
        "paused",
        &priced("soft", 6_000, ""),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    paused.play(400, 200, |_| true).await;
    let reason = json!({ "reason": "prices \"change\" on Monday" });
    let closed = Live::begin(
        house,
        "closed",
        &priced("soft", 6_000, ""),
        BETTER_IS_DEARER,
        ONE_COST,
    )
    .await;
    closed.play(900, 300, |_| true).await;
    for (id, what) in [
        ("paused", "pause"),
        ("closed", "pause"),
        ("closed", "resume"),
        ("closed", "close"),
    ] {
        let path = format!("/v1/experiments/{id}/{what}");
        keep(house, goldens, &Question::post(&path, BOSS, &reason), "").await;
    }
    for id in ["paused", "closed"] {
        let path = format!("/v1/experiments/{id}/decisions");
        keep(
            house,
            goldens,
            &Question::post(&path, BOSS, &json!({ "n": 1 })),
            "",
        )
        .await;
    }
    let path = "/v1/experiments/exploring/decisions";
    let decide = Question::post(path, BOSS, &json!({ "n": 3, "request_key": "a user" }));
    keep(house, goldens, &decide, "decided").await;
    keep(house, goldens, &decide, "repeated").await;
    let outcomes = json!([{ "round": 301, "reward": 1.0, "costs": [0.01] }, { "round": 301, "reward": 0.0, "costs": [0.01] },
        { "request_key": "a user", "index": 1, "reward": 0.5, "costs": { "price": 0.0 } }]);
    let tell = Question::post("/v1/experiments/exploring/outcomes", BOSS, &outcomes);
    keep(house, goldens, &tell, "").await;
    let wrong = json!([{ "round": 302, "reward": 7.0, "costs": [] }]);
    let tell = Question::post("/v1/experiments/exploring/outcomes", BOSS, &wrong);
    keep(house, goldens, &tell, "wrong").await;
    let done = Live::begin(house, "done", &short(""), BETTER_IS_DEARER, ONE_COST).await;
    done.play(30, 64, |_| true).await;
    let publish = json!({ "where": "https://example.com/heads" });
    keep(
        house,
        goldens,
        &Question::post("/v1/experiments/done/publish", BOSS, &publish),
        "",
    )
    .await;
    done.play(64, 64, |_| true).await;
    let again = done.post("decisions", &json!({ "n": 1 })).await;
    goldens.keep("post-done-decisions.txt", house.told(&again));
}

async fn flags(house: &House, goldens: &mut Goldens) {
    let user = json!({ "context": { "targetingKey": "another user" } });
    for id in ["committed", "exploring", "paused", "done", "nowhere"] {
        let path = format!("/ofrep/v1/evaluate/flags/{id}");
        keep(house, goldens, &Question::post(&path, BOSS, &user), "").await;
    }
    // Of all experiments each would decide a round more.
    keep(
        house,
        goldens,
        &Question::post("/ofrep/v1/evaluate/flags", OWNER, &user),
        "",
    )
    .await;
}
