//! The interface's description, OpenAPI 3.1: generated from the handlers, with the errors that they share.
//!
//! For the tests: the program serves `app/openapi.json`, which must be the same text.

use std::sync::LazyLock;

use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, RefOr, SecurityRequirement};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, ResponseBuilder};
use utoipa::{OpenApi as _, PartialSchema as _, ToSchema as _};

use crate::service::http::error::ApiError;
use crate::service::http::problems::MEDIA_TYPE;
use crate::service::http::routes::Described;

const MALFORMED: &str = "Code `malformed`: the address or the body cannot be read";

/// The document, made once: many tests read it.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut document = head().merge_from(Described::openapi());
    document
        .paths
        .paths
        .iter_mut()
        .for_each(|(path, item)| common_errors(path, item));
    let json = serde_json::to_string_pretty(&document).expect("a document is JSON");
    json + "\n"
});

/// The document as it should be served.
pub fn text() -> &'static str {
    &TEXT
}

/// What stands before the routes.
fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("debora")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Live bandit experiments whose decisions replicate, within limits. What is answered is durable.",
        ))
        .build();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, made by `debora keys add`; the header X-API-Key takes it, too. To a key for some experiments the others are not there. A service without keys, on loopback, needs none."))
        .build();
    let mut components = Components::new();
    components.add_security_scheme("key", SecurityScheme::Http(bearer));
    // The shared errors refer to it by name, where schemas are not looked for.
    components
        .schemas
        .insert(ApiError::name().into(), ApiError::schema());
    // For all operations; those that need no key say so themselves.
    let requirement = SecurityRequirement::new("key", Vec::<String>::new());
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some([requirement]))
        .build()
}

/// Adds the errors that an operation shares with others of its kind.
///
/// In one place rather than at each handler: all of them come from the same extractors and the same writer, and the fuzz test
/// (`app/tests/lives/fuzz.rs`) accepts no status that the description does not have.
fn common_errors(path: &str, item: &mut PathItem) {
    for (changes, operation) in [(false, &mut item.get), (true, &mut item.post)] {
        let Some(operation) = operation else { continue };
        access_errors(path, operation);
        // Another's protocol, which says how errors look; the handlers have them all.
        if path.starts_with("/ofrep/") {
            continue;
        }
        error(
            operation,
            "503",
            "Codes `store`, `stopping`, `busy`: repeat the request after the seconds in Retry-After",
        );
        path_errors(path, operation);
        if changes {
            error(
                operation,
                "409",
                "Codes `waiting`, `behind`, `paused`, `closed`, `done`, `id_taken`, `request_key_used`, `key_taken`, `key_revoked`, \
                 `last_admin`, `webhook_taken`, `webhooks`, `webhook_disabled`",
            );
        }
        if operation.request_body.is_some() {
            body_errors(operation);
        }
    }
}

fn access_errors(path: &str, operation: &mut Operation) {
    if path.starts_with("/v1/") || path.starts_with("/ofrep/") || path == "/metrics" {
        error(operation, "401", "Code `no_key`");
        error(
            operation,
            "403",
            "Codes `wrong_role`, `out_of_scope`, `cross_origin`, `not_local`, `forwarded`",
        );
    }
}

/// The errors of what an address may hold.
fn path_errors(path: &str, operation: &mut Operation) {
    if path.contains('{') {
        error(operation, "400", MALFORMED);
    }
    if path.contains("{id}") {
        error(operation, "404", "Codes `no_experiment`, `no_such_round`");
    }
    if operation.parameters.iter().flatten().any(in_query) {
        error(
            operation,
            "422",
            "Codes `unfit`, `cursor`: the limit or the cursor is invalid",
        );
    }
}

fn in_query(parameter: &RefOr<Parameter>) -> bool {
    matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query)
}

fn body_errors(operation: &mut Operation) {
    error(operation, "400", MALFORMED);
    error(
        operation,
        "408",
        "Code `too_slow`: the body did not arrive in time",
    );
    error(operation, "413", "Codes `too_large`, `too_many`");
    error(
        operation,
        "415",
        "Code `media_type`: the body is not declared as application/json",
    );
    error(
        operation,
        "422",
        "A value breaks a rule: `unfit`, `spec`, `world`, `key_in_spec`, `blind`, `id_text`, `name`, `estimates`, \
         `too_long`, `reason`, `rounds`, `request_key`, `request_key_needed`, `index`, \
         `outcome`, `key_name`, `first_key`, `webhook`",
    );
}

fn error(operation: &mut Operation, status: &str, description: &str) {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ApiError::name())))
        .build();
    let response = ResponseBuilder::new()
        .description(description)
        .content(MEDIA_TYPE, content)
        .build();
    // What the handler itself says about a status is more precise, and stays.
    operation
        .responses
        .responses
        .entry(status.to_owned())
        .or_insert_with(|| response.into());
}
