//! One experiment's page in every state that it can be in, as the same experiment goes through them.

use serde_json::{Value, json};

use crate::golden::Goldens;
use crate::house::{House, Question};
use crate::routes::keep;

/// Explores for some ten thousand rounds, with three clear tests on the way.
const CLEAR: &str = "name = 'buttons'\npolicy = 'free'\nhorizon = 100_000_000\nrho = 0.5\nactions = ['green', 'blue']\n\
    [reward]\nname = 'clicks'\n";

/// Estimates after some hundred rounds, and a limit that one action may exceed.
const SOFT: &str = "name = 'routing'\npolicy = 'soft'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['small', 'large']\n\
    [reward]\nname = 'quality'\n[[cost]]\nname = 'price'\nrange = [0.0, 0.02]\nthreshold = 0.01\n";

/// Too short ever to compare.
const BLIND: &str = "name = 'short epochs'\npolicy = 'soft'\nhorizon = 64\nrho = 0.9\ndelta = 0.1\nprofile = 'paper'\n\
    actions = ['left', 'right']\n[[cost]]\nname = 'price'\nthreshold = 0.5\n";

/// A promise that outcomes contradict, and losses that depend on the action.
const ALARMING: &str = "policy = 'hard'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n\
    [[cost]]\nname = 'price'\nthreshold = 0.5\n\
    [safe]\nstrategy = { left = 1.0 }\ncost = { price = 0.1 }\n[service]\noutcome_wait = '10s'\n";

/// An experiment, and what each of its actions gives in every round: a reward and a price.
struct Stages<'a> {
    house: &'a House,
    id: &'static str,
    values: [(f64, f64); 2],
}

impl<'a> Stages<'a> {
    async fn begin(
        house: &'a House,
        id: &'static str,
        spec: &str,
        values: [(f64, f64); 2],
    ) -> Self {
        let key = "70000000000000000000000000000007";
        let body = json!({ "spec": spec, "id": id, "key": key, "blind": true });
        let created = house
            .ask(&Question::post("/v1/experiments", "", &body))
            .await;
        assert_eq!(created.status, 201, "{}", created.text());
        Self { house, id, values }
    }

    async fn post(&self, what: &str, body: &Value) -> Value {
        let path = format!("/v1/experiments/{}/{what}", self.id);
        let answer = self.house.ask(&Question::post(&path, "", body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    async fn decide(&self, n: u64) -> Vec<Value> {
        let mut decided = self.post("decisions", &json!({ "n": n })).await;
        std::mem::take(decided["decisions"].as_array_mut().expect("decisions"))
    }

    async fn tell(&self, decisions: &[Value]) {
        let outcome = |decision: &Value| {
            let action = decision["action"].as_u64().expect("a number");
            let (reward, price) = self.values[action as usize];
            let costs = if price.is_nan() {
                json!([])
            } else {
                json!([price])
            };
            json!({ "round": decision["round"], "reward": reward, "costs": costs })
        };
        let outcomes: Value = decisions.iter().map(outcome).collect();
        self.post("outcomes", &outcomes).await;
    }

    async fn play(&self, rounds: u64) {
        let mut left = rounds;
        while left > 0 {
            let decided = self.decide(left.min(2_000)).await;
            left -= decided.len() as u64;
            self.tell(&decided).await;
        }
    }

    /// Keeps its page as it is now.
    async fn keep(&self, goldens: &mut Goldens, stage: &str) {
        let path = format!("/experiments/{}", self.id);
        keep(self.house, goldens, &Question::get(&path, ""), stage).await;
    }
}

/// From the first request to the first estimate.
pub async fn first_epochs(house: &House, goldens: &mut Goldens) {
    let first = Stages::begin(house, "first-epoch", SOFT, [(1.0, 0.01), (1.0, 0.01)]).await;
    first.keep(goldens, "created").await;
    let decided = first.decide(1).await;
    first.keep(goldens, "exploring").await;
    first.tell(&decided).await;
    let decided = first.decide(10_000).await;
    first.tell(&decided[1..]).await;
    first.keep(goldens, "waiting").await;
    first.tell(&decided[..1]).await;
    first.keep(goldens, "estimated").await;

    let spec = format!("{BLIND}[service]\non_wait = 'serve'\noutcome_wait = '1h'\n");
    let served = Stages::begin(house, "served", &spec, [(1.0, 0.1), (1.0, 0.1)]).await;
    served.decide(1).await;
    served.keep(goldens, "waiting").await;
    let spec = BLIND.replace("horizon = 64", "horizon = 1");
    let last = Stages::begin(house, "last-round", &spec, [(1.0, 0.1), (1.0, 0.1)]).await;
    last.decide(1).await;
    house.wait(1_000).await;
    last.keep(goldens, "decided").await;

    let clear = Stages::begin(house, "clear", CLEAR, [(0.5, f64::NAN), (0.5, f64::NAN)]).await;
    clear.play(20).await;
    clear.keep(goldens, "exploring").await;
}

/// What is paused, closed, done or committed, and what is to be deployed then.
pub async fn ends(house: &House, goldens: &mut Goldens) {
    let reason = json!({ "reason": "prices <changed>" });
    let early = Stages::begin(house, "early", SOFT, [(0.2, 0.001), (0.9, 0.019)]).await;
    early.play(40).await;
    early.post("pause", &reason).await;
    early.keep(goldens, "paused").await;
    early.post("close", &reason).await;
    early.keep(goldens, "closed").await;

    for (id, price) in [("deployed", 0.001), ("deployed-against-a-limit", 0.0104)] {
        let done = Stages::begin(house, id, SOFT, [(0.2, 0.001), (0.9, price)]).await;
        done.play(20_000).await;
        done.keep(goldens, "done").await;
    }
    let blind = Stages::begin(house, "blind", BLIND, [(1.0, 0.1), (1.0, 0.1)]).await;
    blind.play(1).await;
    blind.keep(goldens, "running").await;

    let ahead = Stages::begin(house, "ahead", CLEAR, [(0.0, f64::NAN), (1.0, f64::NAN)]).await;
    ahead.play(30_000).await;
    ahead.keep(goldens, "committed").await;
    ahead.post("close", &json!({})).await;
    ahead.keep(goldens, "closed").await;
    let state = Question::get("/v1/experiments/ahead/state", "");
    keep(house, goldens, &state, "closed").await;
}

/// What somebody should look into.
pub async fn alerts(house: &House, goldens: &mut Goldens) {
    let dear = Stages::begin(house, "dear", SOFT, [(0.2, 0.02), (0.9, 0.02)]).await;
    dear.play(8_000).await;
    dear.keep(goldens, "infeasible").await;
    let alarming = Stages::begin(house, "alarming", ALARMING, [(0.0, 0.9), (0.0, 0.9)]).await;
    for _ in 0..12 {
        let mut decided = alarming.decide(500).await;
        decided.retain(|decision| {
            decision["action"] == 0
                || decision["round"]
                    .as_u64()
                    .is_some_and(|round| round % 3 > 0)
        });
        alarming.tell(&decided).await;
        house.wait(20_000).await;
    }
    alarming.keep(goldens, "running").await;
    alarming.post("close", &json!({})).await;
    alarming.keep(goldens, "closed").await;
}
