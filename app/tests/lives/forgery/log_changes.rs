//! Single forgeries of a log, on its lines.

use serde_json::{Value, json};

/// A name, and what it does to the lines of a log; the others are those of another run.
pub type LogChange = (&'static str, fn(&mut Vec<Value>, &[Value]));

/// The places of the lines of a kind.
fn places(lines: &[Value], kind: &str) -> Vec<usize> {
    let of_kind = lines.iter().enumerate();
    of_kind
        .filter(|(_, line)| line["type"] == kind)
        .map(|(place, _)| place)
        .collect()
}

/// The first line of a kind, if there is one left.
fn first<'a>(lines: &'a mut [Value], kind: &str) -> &'a mut Value {
    match places(lines, kind).first() {
        Some(place) => &mut lines[*place],
        None => &mut lines[0],
    }
}

fn last<'a>(lines: &'a mut [Value], kind: &str) -> &'a mut Value {
    match places(lines, kind).last() {
        Some(place) => &mut lines[*place],
        None => &mut lines[0],
    }
}

fn removed(lines: &mut Vec<Value>, kind: &str, nth: usize) {
    if let Some(place) = places(lines, kind).get(nth) {
        lines.remove(*place);
    }
}

fn doubled(lines: &mut Vec<Value>, kind: &str) {
    if let Some(place) = places(lines, kind).first() {
        lines.insert(*place, lines[*place].clone());
    }
}

fn added(line: &mut Value, field: &str, more: i64) {
    let number = line[field].as_i64().unwrap_or_default() + more;
    line[field] = number.into();
}

fn event<'a>(lines: &'a mut [Value], what: &str) -> &'a mut Value {
    match lines.iter().position(|line| line["what"] == what) {
        Some(place) => &mut lines[place],
        None => &mut lines[0],
    }
}

/// All of them.
pub fn all() -> Vec<LogChange> {
    let mut all = values();
    all.extend(structure());
    all
}

/// Values of lines.
fn values() -> Vec<LogChange> {
    vec![
        (
            "everything rewritten with other outcomes",
            |lines, other| *lines = other.to_vec(),
        ),
        ("a reward of an early epoch", |lines, _| {
            first(lines, "outcome")["reward"] = 0.125.into()
        }),
        ("a reward of the last epoch", |lines, _| {
            last(lines, "outcome")["reward"] = 0.125.into()
        }),
        ("an outcome's time", |lines, _| {
            added(first(lines, "outcome"), "at", 1)
        }),
        ("an outcome's actor", |lines, _| {
            first(lines, "outcome")["actor"] = "carl".into()
        }),
        ("a told outcome called imputed", |lines, _| {
            first(lines, "outcome")["imputed"] = true.into()
        }),
        ("an action", |lines, _| {
            let action = &mut first(lines, "decisions")["actions"];
            *action = match action[0] == 0 {
                true => json!([1]),
                false => json!([0]),
            };
        }),
        ("a request's time", |lines, _| {
            added(first(lines, "decisions"), "at", -1)
        }),
        ("a request's key", |lines, _| {
            first(lines, "decisions")["request_key"] = "x".into()
        }),
        ("a request's asked rounds", |lines, _| {
            added(first(lines, "decisions"), "asked", 1)
        }),
        ("a request's waiting clock", |lines, _| {
            added(first(lines, "decisions"), "waited", 1)
        }),
        ("a late outcome's values", |lines, _| {
            first(lines, "late")["reward"] = 0.125.into()
        }),
        ("an overtime outcome's values", |lines, _| {
            first(lines, "overtime_outcome")["reward"] = 0.125.into()
        }),
        ("an uncounted outcome's position", |lines, _| {
            added(last(lines, "late"), "position", 1)
        }),
        ("a request's key that is held back", |lines, _| {
            // The two change sides: each is where the other's key belongs.
            let key = first(lines, "holdback")["request_key"].clone();
            let other = first(lines, "decisions")["request_key"].take();
            first(lines, "decisions")["request_key"] = key;
            first(lines, "holdback")["request_key"] = other;
        }),
        ("a held back action", |lines, _| {
            first(lines, "holdback")["actions"][0] = 0.into()
        }),
        ("a holdback outcome's values", |lines, _| {
            first(lines, "holdback_outcome")["reward"] = 0.125.into()
        }),
        ("a reason", |lines, _| {
            event(lines, "paused")["reason"] = "none".into()
        }),
        ("when it was paused", |lines, _| {
            added(event(lines, "paused"), "at", -5)
        }),
        ("what happened", |lines, _| {
            event(lines, "paused")["what"] = "closed".into()
        }),
        ("its id", |lines, _| lines[0]["id"] = "other".into()),
        ("when it was created", |lines, _| {
            added(&mut lines[0], "created_at", -1)
        }),
        ("its key", |lines, _| {
            lines[0]["key"] = "0".repeat(32).into()
        }),
        ("its key withheld", |lines, _| {
            lines[0]["key"] = Value::Null;
            lines[0]["salt"] = Value::Null;
        }),
        ("its values version", |lines, _| {
            lines[0]["values_version"] = 1.into()
        }),
        ("when the last epoch closed", |lines, _| {
            added(last(lines, "closed"), "closed_at", 1)
        }),
        ("a strategy", |lines, _| {
            last(lines, "epoch")["record"]["strategy"] = json!([0.25, 0.75]);
        }),
        ("an epoch's hash", |lines, _| {
            let line = last(lines, "closed");
            line["hash"] = line["rounds_hash"].clone();
        }),
        ("an epoch's end called early", |lines, _| {
            last(lines, "closed")["early"] = true.into()
        }),
        ("what an epoch's hash is over", |lines, _| {
            let line = first(lines, "closed").as_object_mut().unwrap();
            for field in ["leases_hash", "journal_end", "journal"] {
                line.remove(field);
            }
        }),
        ("the number of late outcomes", |lines, _| {
            added(&mut last(lines, "state")["progress"], "late", 1)
        }),
        ("the head", |lines, _| {
            let progress = &mut last(lines, "state")["progress"];
            progress["head"] = progress["digest"].clone();
        }),
    ]
}

/// Lines, and fields that nobody knows.
fn structure() -> Vec<LogChange> {
    vec![
        ("an unknown field", |lines, _| {
            first(lines, "outcome")["note"] = "x".into()
        }),
        ("an unknown line", |lines, _| {
            lines.insert(1, json!({ "type": "note" }))
        }),
        ("an outcome removed", |lines, _| {
            removed(lines, "outcome", 3)
        }),
        ("a request removed", |lines, _| {
            removed(lines, "decisions", 0)
        }),
        ("overtime and its outcomes removed", |lines, _| {
            lines.retain(|line| line["type"] != "overtime" && line["type"] != "overtime_outcome");
        }),
        ("holdback and its outcomes removed", |lines, _| {
            lines.retain(|line| line["type"] != "holdback" && line["type"] != "holdback_outcome");
        }),
        ("a holdback outcome removed", |lines, _| {
            removed(lines, "holdback_outcome", 0)
        }),
        ("a late outcome removed", |lines, _| {
            removed(lines, "late", 0)
        }),
        ("an overtime outcome removed", |lines, _| {
            removed(lines, "overtime_outcome", 0)
        }),
        ("the last fact removed", |lines, _| {
            lines.remove(lines.len() - 2);
        }),
        ("paused and resumed hidden", |lines, _| {
            lines.retain(|line| line["what"] != "paused" && line["what"] != "resumed");
        }),
        ("an epoch removed", |lines, _| {
            let (begin, end) = (places(lines, "epoch"), places(lines, "closed"));
            if let (Some(begin), Some(end)) = (begin.get(1), end.get(1))
                && begin < end
            {
                lines.drain(*begin..=*end);
            }
        }),
        ("the last epoch removed", |lines, _| {
            let (begin, end) = (places(lines, "epoch"), places(lines, "closed"));
            if let (Some(begin), Some(end)) = (begin.last(), end.last())
                && begin < end
            {
                lines.drain(*begin..=*end);
            }
        }),
        ("the state removed", |lines, _| removed(lines, "state", 0)),
        ("the state doubled", |lines, _| doubled(lines, "state")),
        ("a line after the end", |lines, _| {
            lines.push(lines[1].clone())
        }),
        ("two uncounted outcomes in the other order", |lines, _| {
            let end = lines.len();
            lines.swap(end - 2, end - 3);
            let position = lines[end - 2]["position"].take();
            lines[end - 2]["position"] = lines[end - 3]["position"].take();
            lines[end - 3]["position"] = position;
        }),
        ("half of it", |lines, _| lines.truncate(lines.len() / 2)),
        ("said to go on", |lines, _| {
            last(lines, "state")["moved"] = true.into()
        }),
    ]
}
