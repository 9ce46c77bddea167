//! What is told: an event, its id, and the body of its message in the shape that a webhook wants.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::calendar::iso;
use crate::hex;
use crate::service::webhooks::EventKind;
use crate::store::Webhook;

/// The text of Slack's messages, if no other is given.
const TEMPLATE: &str = "*{experiment}*: {words}";

/// What a template may have in braces.
pub const WORDS: [&str; 4] = ["experiment", "event", "words", "link"];

/// What first stands behind a template's brace and is not one of the [`WORDS`]: it would be sent as it was typed.
pub fn unknown_word(template: &str) -> Option<&str> {
    let mut parts = template.split('{').skip(1);
    parts.find_map(|part| match part.split_once('}') {
        Some((word, _)) if WORDS.contains(&word) => None,
        Some((word, _)) => Some(word),
        None => Some(part),
    })
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// What.
    pub kind: EventKind,
    /// To which experiment; empty for a test.
    pub experiment: String,
    /// To what of it, such as the name of a cost; empty if there is only one.
    pub what: String,
    /// In which epoch.
    pub epoch: u64,
    /// When.
    pub at: i64,
    /// In a sentence or two.
    pub words: String,
    /// What else a program may want to know.
    pub facts: Map<String, Value>,
}

impl Notice {
    /// What a receiver knows its repetition by: of the same event it is the same, whichever node saw it and however often.
    pub fn id(&self, identity: &str) -> String {
        let epoch = self.epoch.to_string();
        let parts = [
            identity,
            &self.experiment,
            self.kind.name(),
            &self.what,
            &epoch,
        ];
        // No part has a zero byte in it, so that no two lists of them read the same.
        let digest = Sha256::digest(parts.join("\0"));
        format!("msg_{}", hex::encode(&digest[..16]))
    }

    /// The body of its message to a webhook.
    pub fn body(&self, webhook: &Webhook) -> String {
        let body = if webhook.format == "slack" {
            let template = webhook.template.as_deref().unwrap_or(TEMPLATE);
            json!({ "text": self.fill(template) })
        } else {
            self.document()
        };
        body.to_string()
    }

    fn document(&self) -> Value {
        let mut data = self.facts.clone();
        data.insert("words".into(), json!(self.words));
        if self.kind != EventKind::Test {
            data.insert("experiment".into(), json!(self.experiment));
            data.insert("epoch".into(), json!(self.epoch));
            data.insert("link".into(), json!(self.link()));
        }
        json!({ "type": self.kind.name(), "timestamp": iso(self.at), "data": data })
    }

    /// The page to look at. A path alone, as the service does not know by which address people reach it.
    fn link(&self) -> String {
        format!("/experiments/{}", self.experiment)
    }

    /// A template with the [`WORDS`] in braces replaced, once: what is put in may have braces of its own.
    fn fill(&self, template: &str) -> String {
        let mut parts = template.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (word, rest) = part.split_once('}').unwrap_or(("", part));
            match self.word(word) {
                Some(value) => {
                    text += &escaped(&value);
                    text += rest;
                }
                // Not one of the words: it stays as it was typed.
                None => {
                    text.push('{');
                    text += part;
                }
            }
        }
        text
    }

    /// One of the [`WORDS`].
    fn word(&self, word: &str) -> Option<String> {
        match word {
            "experiment" if self.kind == EventKind::Test => Some("debora".into()),
            "experiment" => Some(self.experiment.clone()),
            "event" => Some(self.kind.name().into()),
            "words" => Some(self.words.clone()),
            "link" => Some(self.link()),
            _ => None,
        }
    }
}

/// As Slack wants it: in its messages these three begin links, mentions and entities.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Deliveries, WebhookSecret};

    fn notice() -> Notice {
        Notice {
            kind: EventKind::LimitExceeded,
            experiment: "trial".into(),
            what: "price".into(),
            epoch: 3,
            at: 1_794_780_282_007,
            words: "<!channel> & {link} > 1".into(),
            facts: Map::from_iter([("cost".into(), json!("price"))]),
        }
    }

    fn webhook(format: &str, template: Option<&str>) -> Webhook {
        Webhook {
            name: "ops".into(),
            url: "http://127.0.0.1/".into(),
            secret: WebhookSecret([1; 32]),
            format: format.into(),
            template: template.map(String::from),
            events: None,
            experiments: None,
            wait: 1,
            created_at: 0,
            disabled_at: None,
            deliveries: Deliveries::default(),
        }
    }

    #[test]
    fn what_slack_is_told_begins_no_mention_and_is_replaced_once() {
        let text = |template| {
            let body = notice().body(&webhook("slack", template));
            serde_json::from_str::<Value>(&body).unwrap()["text"].clone()
        };
        let words = "&lt;!channel&gt; &amp; {link} &gt; 1";
        assert_eq!(text(None), json!(format!("*trial*: {words}")));
        let template = "<https://debora.example{link}|{experiment}> {event} {words} {other} {";
        let filled = format!(
            "<https://debora.example/experiments/trial|trial> limit.exceeded {words} {{other}} {{"
        );
        assert_eq!(text(Some(template)), json!(filled));
        for word in WORDS {
            assert!(notice().word(word).is_some(), "{word}");
        }
        assert_eq!(unknown_word(template), Some("other"));
        assert_eq!(unknown_word("{words}, {link}} {experiment}"), None);
        for (template, unknown) in [
            ("{words }", "words "),
            ("{} {words", ""),
            ("{event} {words", "words"),
            ("{{words}", ""),
        ] {
            assert_eq!(unknown_word(template), Some(unknown), "{template}");
        }
    }

    #[test]
    fn a_message_says_what_when_and_to_which_experiment() {
        let body = notice().body(&webhook("standard", None));
        let data = json!({ "cost": "price", "experiment": "trial", "epoch": 3, "link": "/experiments/trial",
            "words": "<!channel> & {link} > 1" });
        let expected = json!({ "type": "limit.exceeded", "timestamp": "2026-11-15T22:04:42.007Z", "data": data });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    }

    #[test]
    fn ids_are_of_the_event_and_of_nothing_else() {
        let id = notice().id("ab");
        assert_eq!(id.len(), 36);
        let changed = [
            Notice {
                at: 0,
                words: "other".into(),
                ..notice()
            },
            Notice {
                epoch: 4,
                ..notice()
            },
            Notice {
                what: "power".into(),
                ..notice()
            },
            Notice {
                experiment: "trial-2".into(),
                ..notice()
            },
            Notice {
                kind: EventKind::SampleRatio,
                ..notice()
            },
        ];
        let same = changed.map(|changed| changed.id("ab") == id);
        assert_eq!(same, [true, false, false, false, false]);
        assert_ne!(notice().id("cd"), id);
    }
}
