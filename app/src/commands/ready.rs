//! `debora ready`: asks a server's `/ready`, for containers and monitors that have no program to ask with.

use std::time::Duration;

use anyhow::Result;

use crate::args::Common;
use crate::commands::print;

/// Monitors ask again soon, and count an answer this late as none.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// False if it is not ready, or if nothing answers: for those who ask, both mean the same.
pub fn ready(listen: &str, common: &Common) -> Result<bool> {
    let url = format!("http://{listen}/ready");
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(ANSWER_MAX))
        // The server is this machine's own; a proxy would be asked for another's.
        .proxy(None);
    let agent: ureq::Agent = config.build().into();
    let answered = agent.get(&url).call().and_then(|mut answer| {
        let text = answer.body_mut().read_to_string()?;
        Ok((answer.status().as_u16(), text))
    });
    match answered {
        Ok((200, text)) => {
            print(&if common.json {
                format!("{text}\n")
            } else {
                "ready\n".to_owned()
            })?;
            Ok(true)
        }
        Ok((status, text)) => {
            eprintln!("not ready: {url} answers {status}: {text}");
            Ok(false)
        }
        Err(error) => {
            eprintln!("not ready: {url} does not answer ({error}); is the server running?");
            Ok(false)
        }
    }
}
