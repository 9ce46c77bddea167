//! Where in a JSON text a reader stopped, as a path: `[0].costs.price`.
//!
//! Found from the text alone. To have the path kept while the text is read, every type would be compiled a second time for it.

/// What encloses a place in a text.
enum Step {
    /// The value at this place of a list.
    Element(usize),
    /// The value of this key, or of none before it is read.
    Member(Option<String>),
}

/// The deepest that a path leads, as deep as values are read. What nobody reads may lie deeper, by a byte a level.
const DEPTH_MAX: usize = 128;

/// The path to where a reader of valid JSON stopped: behind this many bytes of a line, counted from 1. Empty for the whole.
pub fn path_at(text: &[u8], line: usize, column: usize) -> String {
    let before: usize = text
        .split_inclusive(|byte| *byte == b'\n')
        .take(line.saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let read = &text[..before.saturating_add(column).min(text.len())];
    let mut steps = Vec::new();
    // Levels beyond the deepest.
    let mut deeper = 0_usize;
    let mut at = 0;
    while let Some(byte) = read.get(at) {
        match byte {
            b'"' => {
                let length = string_length(&read[at..]);
                // The first string of a member is its key.
                if let Some(Step::Member(key @ None)) = steps.last_mut() {
                    *key = serde_json::from_slice(&read[at..at + length]).ok();
                }
                at += length;
                continue;
            }
            b'[' | b'{' if steps.len() == DEPTH_MAX => deeper += 1,
            b']' | b'}' if deeper > 0 => deeper -= 1,
            b',' if deeper > 0 => {}
            b'[' => steps.push(Step::Element(0)),
            b'{' => steps.push(Step::Member(None)),
            b']' | b'}' => drop(steps.pop()),
            b',' => match steps.last_mut() {
                Some(Step::Element(place)) => *place += 1,
                Some(Step::Member(key)) => *key = None,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    shown(&steps)
}

/// The bytes of the string that a text begins with, or of as much of it as there is.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

fn shown(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Element(place) => path += &format!("[{place}]"),
            Step::Member(None) => {}
            Step::Member(Some(key)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path += key;
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read to be refused")]
    struct Body {
        round: u64,
        #[serde(default)]
        costs: BTreeMap<String, f64>,
        #[serde(default)]
        inner: Vec<Body>,
        #[serde(default)]
        key: Option<String>,
    }

    /// Where reading stops by the text, and by a reader that keeps the path.
    fn paths(text: &str) -> Option<[String; 2]> {
        let error = serde_json::from_str::<Vec<Body>>(text).err()?;
        let by_text = path_at(text.as_bytes(), error.line(), error.column());
        let mut reader = serde_json::Deserializer::from_str(text);
        let kept = serde_path_to_error::deserialize::<_, Vec<Body>>(&mut reader).unwrap_err();
        let kept = kept.path().to_string();
        Some([by_text, if kept == "." { String::new() } else { kept }])
    }

    /// A body, and what may be wrong with it in any place.
    fn body() -> impl Strategy<Value = Value> {
        let costs = prop_oneof![
            4 => Just(json!({ "pri\"ce\\": 0.5, "é": 1 })),
            1 => Just(json!({ "price": "0.5" })),
            1 => Just(json!({ "a": 1, "b": null })),
            1 => Just(json!(7)),
        ];
        let round = prop_oneof![
            8 => Just(json!(1)),
            1 => Just(json!(-1)),
            1 => Just(json!(1.5)),
            1 => Just(json!("{[:,\\")),
            1 => Just(Value::Null),
        ];
        let other = prop_oneof![
            6 => Just(None),
            1 => Just(Some(("key", json!("]}\"")))),
            1 => Just(Some(("key", json!([1])))),
            1 => Just(Some(("more", json!(1)))),
        ];
        let leaf = (round, costs, other).prop_map(|(round, costs, other)| {
            let mut body = json!({ "costs": costs });
            if !round.is_null() {
                body["round"] = round;
            }
            if let Some((key, value)) = other {
                body[key] = value;
            }
            body
        });
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::vec(inner, 0..3)
                .prop_map(|inner| json!({ "round": 1, "inner": inner }))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn a_text_tells_the_path_that_a_reader_could_keep(bodies in prop::collection::vec(body(), 1..3), pretty: bool) {
            let text = if pretty {
                serde_json::to_string_pretty(&bodies).unwrap()
            } else {
                serde_json::to_string(&bodies).unwrap()
            };
            if let Some([by_text, kept]) = paths(&text) {
                prop_assert_eq!(by_text, kept, "{}", text);
            }
        }
    }

    #[test]
    fn places_that_no_text_has_are_no_panic() {
        for (line, column) in [(0, 0), (1, 99), (9, 9)] {
            path_at(b"[{\"a", line, column);
        }
        assert_eq!(path_at(b"", 1, 1), "");
        let deep = format!(
            "[{}0, {{\"a\": [1, 2]}}{}, 7",
            "[".repeat(1_000),
            "]".repeat(1_000)
        );
        assert_eq!(path_at(deep.as_bytes(), 1, deep.len()), "[1]");
        let inside = path_at(deep.as_bytes(), 1, 1_020);
        assert_eq!(inside, "[0]".repeat(DEPTH_MAX));
    }
}
