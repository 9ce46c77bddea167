//! Requests as most tests make them: by one tester, without keys and reasons.

use debora::Key;
use debora_cli::service::request::{
    Change, Create, Decide, DecisionId, MakeChange, Request, Tell, Tick, ToldOutcome,
};

const TESTER: &str = "tester";

pub fn create(id: impl Into<String>, spec: impl Into<String>, key: Option<Key>) -> Request {
    Request::Create(Create {
        id: id.into(),
        spec: spec.into(),
        key,
        blind: true,
        actor: TESTER.into(),
    })
}

pub fn ask(id: impl Into<String>, rounds: u64) -> Request {
    ask_by_key(id, rounds, None)
}

pub fn ask_by_key(id: impl Into<String>, rounds: u64, request_key: Option<String>) -> Request {
    Request::Decide(Decide {
        id: id.into(),
        rounds,
        request_key,
        seen: 0,
        actor: TESTER.into(),
    })
}

pub fn tell(id: impl Into<String>, outcomes: impl IntoIterator<Item = ToldOutcome>) -> Request {
    Request::Tell(Tell {
        id: id.into(),
        outcomes: outcomes.into_iter().collect(),
        actor: TESTER.into(),
    })
}

/// What came of a round.
pub fn told(round: u64, reward: f64, costs: impl Into<Vec<f64>>) -> ToldOutcome {
    ToldOutcome {
        decision: DecisionId::Round(round),
        reward,
        costs: costs.into(),
    }
}

pub fn to_change(id: impl Into<String>, change: Change) -> Request {
    Request::Change(MakeChange {
        id: id.into(),
        change,
        actor: TESTER.into(),
        reason: None,
    })
}

pub fn tick(id: impl Into<String>) -> Request {
    Request::Tick(Tick { id: id.into() })
}
