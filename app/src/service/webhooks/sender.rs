//! Sends what was claimed: one webhook's messages one after the other, on a thread of its own, so that a receiver that does not
//! answer holds up nobody but itself.

use std::time::{Duration, Instant};

use ureq::Agent;

use crate::calendar;
use crate::service::webhooks::outbox::{Attempt, Claimed, Settled};
use crate::service::webhooks::signature::signature;
use crate::store::{Webhook, WebhookMessage};

/// How long a receiver may take for its answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long messages are sent one after the other: a claim must not run out meanwhile.
const BATCH: Duration = Duration::from_secs(2);

/// Sends messages, as long as there is time.
pub fn send(claimed: Claimed) -> Vec<Settled> {
    let Claimed { webhook, messages } = claimed;
    // Made anew for each batch: a connection kept for the next may be closed by then, and would count as a failure.
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        // A redirect could lead a signed message anywhere.
        .max_redirects(0)
        .user_agent(concat!("debora/", env!("CARGO_PKG_VERSION")));
    let agent: Agent = config.build().into();
    let begun = Instant::now();
    let mut gone = false;
    let settle = |message: WebhookMessage| {
        // A receiver that never answers has used up the time with the first of them.
        let sent = if gone || begun.elapsed() >= BATCH {
            Attempt::Untried
        } else {
            post(&agent, &webhook, &message)
        };
        gone = gone || sent == Attempt::Gone;
        Settled { message, sent }
    };
    messages.into_iter().map(settle).collect()
}

fn post(agent: &Agent, webhook: &Webhook, message: &WebhookMessage) -> Attempt {
    // Of this attempt: receivers refuse old ones, so that nobody can send a message again that was overheard.
    let timestamp = calendar::now() / 1_000;
    let signature = signature(webhook.secret, &message.id, timestamp, &message.body);
    let request = agent
        .post(&webhook.url)
        .content_type("application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", timestamp.to_string())
        .header("webhook-signature", signature);
    match request.send(&message.body) {
        Ok(answer) => match answer.status().as_u16() {
            200..300 => Attempt::Taken,
            410 => Attempt::Gone,
            status @ 300..400 => Attempt::Failed(format!(
                "it answered {status}, and redirects are not followed"
            )),
            status => Attempt::Failed(format!("it answered {status}")),
        },
        Err(error) => Attempt::Failed(reason(&error)),
    }
}

/// In words, without the address, which some errors have in them and which may be secret.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} seconds", TIMEOUT.as_secs()),
        ureq::Error::HostNotFound => "its host was not found".into(),
        ureq::Error::Io(error) => format!("the connection failed: {error}"),
        ureq::Error::ConnectionFailed => "the connection failed".into(),
        ureq::Error::Protocol(_) => "its answer is not HTTP".into(),
        ureq::Error::Rustls(error) => format!("TLS failed: {error}"),
        _ => "it could not be sent".into(),
    }
}
