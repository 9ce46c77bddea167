//! How tests ask a server on its socket.

use serde_json::Value;
use ureq::{Agent, Error, RequestBuilder};

/// What a server answers, whatever the status: that, and the body, a text where it is no JSON.
pub type Answer = (u16, Value);

/// Posts a body, or gets; with an API key, or as nobody.
pub fn ask(
    address: &str,
    path: &str,
    body: Option<&Value>,
    api_key: Option<&str>,
) -> Result<Answer, Error> {
    let config = Agent::config_builder().http_status_as_error(false);
    let agent: Agent = config.build().into();
    let url = format!("http://{address}{path}");
    let mut answer = match body {
        Some(body) => keyed(agent.post(url), api_key)
            .content_type("application/json")
            .send(body.to_string())?,
        None => keyed(agent.get(url), api_key).call()?,
    };
    let text = answer.body_mut().read_to_string()?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok((answer.status().as_u16(), body))
}

fn keyed<Body>(request: RequestBuilder<Body>, api_key: Option<&str>) -> RequestBuilder<Body> {
    match api_key {
        Some(key) => request.header("authorization", format!("Bearer {key}")),
        None => request,
    }
}
