//! The interface's description, OpenAPI 3.1: made of the handlers themselves, and what all of them have in common.
//!
//! `app/openapi.json` is the same text, kept so that a change of the interface shows in a diff.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, SecurityRequirement};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, ResponseBuilder};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::service::http::error::ApiError;

/// The document as it is served.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let (_, mut document) = super::interface().split_for_parts();
    document
        .paths
        .paths
        .iter_mut()
        .for_each(|(path, item)| common_errors(path, item));
    let json = serde_json::to_string_pretty(&document).expect("a document is JSON");
    json + "\n"
});

/// The document as it is served.
pub fn text() -> &'static str {
    &TEXT
}

/// This document
///
/// Needs no key.
#[utoipa::path(get, path = "/openapi.json", tag = "service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")))]
pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], text()).into_response()
}

/// What stands before the routes.
pub fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("debora")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Live bandit experiments whose decisions replicate, within limits. What is answered is durable.",
        ))
        .build();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, made by `debora keys add`. A service without keys, on loopback, needs none."))
        .build();
    let mut components = Components::new();
    components.add_security_scheme("key", SecurityScheme::Http(bearer));
    components
        .schemas
        .insert(ApiError::name().into(), ApiError::schema());
    let requirement = SecurityRequirement::new("key", Vec::<String>::new());
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some([requirement]))
        .build()
}

/// Adds the errors that an operation shares with others of its kind.
fn common_errors(path: &str, item: &mut PathItem) {
    for (changes, operation) in [(false, &mut item.get), (true, &mut item.post)] {
        let Some(operation) = operation else { continue };
        let mut add = |status, codes| error(operation, status, codes);
        add(
            "503",
            "Codes `store`, `stopping`, `busy`: repeat the request",
        );
        if path.starts_with("/v1/") || path == "/metrics" {
            add("401", "Code `no_key`");
            add("403", "Codes `wrong_role`, `cross_origin`, `not_local`");
        }
        if path.contains("{id}") {
            add(
                "400",
                "Code `malformed`: the address or the body cannot be read",
            );
            add("404", "Codes `no_experiment`, `no_such_round`");
        }
        if changes {
            add(
                "409",
                "Codes `waiting`, `paused`, `closed`, `done`, `id_taken`, `request_key_used`",
            );
        }
        if path.ends_with("/log") {
            add(
                "422",
                "Codes `unfit`, `cursor`: the limit or the cursor is none",
            );
        }
        if operation.request_body.is_some() {
            let mut add = |status, codes| error(operation, status, codes);
            add(
                "400",
                "Code `malformed`: the address or the body cannot be read",
            );
            add("408", "Code `too_slow`: the body did not arrive in time");
            add("413", "Codes `too_large`, `too_many`");
            add(
                "415",
                "Code `media_type`: the body is not declared as application/json",
            );
            add(
                "422",
                "A value breaks a rule: `unfit`, `spec`, `world`, `key_in_spec`, `blind`, `id_text`, `rounds`, `request_key`, `outcome`",
            );
        }
    }
}

fn error(operation: &mut Operation, status: &str, description: &str) {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ApiError::name())))
        .build();
    let response = ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build();
    operation
        .responses
        .responses
        .entry(status.to_owned())
        .or_insert_with(|| response.into());
}
