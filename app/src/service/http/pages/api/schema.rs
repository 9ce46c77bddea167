//! Schemas of the OpenAPI document in words and tables.

use debora::measure::words::whole;
use maud::{Markup, html};
use serde_json::Value;

use crate::service::http::pages::parts;

/// The whole document.
pub struct ApiDocument(pub Value);

/// A link to a schema of this name.
pub fn link(name: &str) -> Markup {
    html! { a href={ "#schema-" (name) } { (name) } }
}

/// Text in which `code` is marked as in Markdown.
pub fn prose(text: &str) -> Markup {
    let pieces = text.split('`').enumerate();
    html! {
        p { @for (place, piece) in pieces { @if place % 2 == 1 { code { (piece) } } @else { (piece) } } }
    }
}

/// The head of a table of fields.
pub fn head(first: &str) -> Markup {
    html! { thead { tr { th scope="col" { (first) } th scope="col" { "Type" } th scope="col" { "Meaning" } } } }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

impl ApiDocument {
    /// All schemas that have a name.
    pub fn schemas(&self) -> impl Iterator<Item = (&String, &Value)> {
        let schemas = self.0["components"]["schemas"].as_object();
        schemas.into_iter().flatten()
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        name_of(schema).map_or(schema, |name| &self.0["components"]["schemas"][name])
    }

    /// A schema with a name.
    pub fn section(&self, name: &str, schema: &Value) -> Markup {
        html! {
            section.schema id={ "schema-" (name) } {
                h3 { (name) }
                (prose(schema["description"].as_str().unwrap_or_default()))
                @if self.fields(schema).is_empty() { p { (self.kind(schema)) } } @else { (self.fields_of(schema)) }
            }
        }
    }

    /// The fields of what a schema describes, or of each item if that is a list.
    pub fn fields_of(&self, schema: &Value) -> Markup {
        let each = &schema["items"];
        let fields = self.fields(if each.is_null() { schema } else { each });
        html! {
            @if !fields.is_empty() {
                (parts::scroll("Fields", &html! {
                    table {
                        (head("Field"))
                        tbody { @for (name, field, required) in fields { (self.row(name, field, required, field)) } }
                    }
                }))
            }
        }
    }

    /// Fields with their schemas, and whether they are required. What is flattened into an object has its fields there.
    fn fields<'a>(&'a self, schema: &'a Value) -> Vec<(&'a str, &'a Value, bool)> {
        let schema = self.resolved(schema);
        let mut fields = Vec::new();
        // An optional body is described as what it is, or null.
        let parts = ["allOf", "oneOf"].map(|key| schema[key].as_array().into_iter().flatten());
        for part in parts.into_iter().flatten() {
            fields.extend(self.fields(part));
        }
        let required = |name: &str| {
            let mut names = schema["required"].as_array().into_iter().flatten();
            names.any(|required| required == name)
        };
        let own = schema["properties"].as_object().into_iter().flatten();
        fields.extend(own.map(|(name, field)| (name.as_str(), field, required(name))));
        fields
    }

    /// A parameter of an address.
    pub fn parameter(&self, parameter: &Value) -> Markup {
        let name = parameter["name"].as_str().unwrap_or_default();
        let required = parameter["required"] == true;
        self.row(name, &parameter["schema"], required, parameter)
    }

    fn row(&self, name: &str, schema: &Value, required: bool, described: &Value) -> Markup {
        // Of a value that may be null, the other alternative says what it is.
        let alternatives = schema["oneOf"].as_array().into_iter().flatten();
        let text = [described]
            .into_iter()
            .chain(alternatives)
            .find_map(|schema| schema["description"].as_str());
        let rules = rules(schema);
        html! {
            tr {
                th scope="row" { code { (name) } @if required { " " span.small { "required" } } }
                td { (self.kind(schema)) @for rule in rules { br; span.small { (rule) } } }
                td { (prose(text.unwrap_or_default())) }
            }
        }
    }

    /// What kind of value it is.
    pub fn kind(&self, schema: &Value) -> Markup {
        if let Some(name) = name_of(schema) {
            return link(name);
        }
        if let Some(values) = schema["enum"].as_array() {
            return joined(
                values
                    .iter()
                    .map(|value| html! { code { (value.to_string()) } }),
            );
        }
        if let Some(alternatives) = schema["oneOf"].as_array() {
            return joined(alternatives.iter().map(|schema| self.kind(schema)));
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return joined(parts.iter().map(|schema| self.kind(schema)));
        }
        // OpenAPI 3.1 says that something may be null by a list of types.
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => Vec::from_iter(one.as_str()),
        };
        if types.is_empty() {
            return html! { "any value" };
        }
        joined(types.into_iter().map(|kind| self.plain(kind, schema)))
    }

    fn plain(&self, kind: &str, schema: &Value) -> Markup {
        let (items, values) = (&schema["items"], &schema["additionalProperties"]);
        match kind {
            "array" => html! { "list of " (self.kind(items)) },
            "object" if values.is_object() => html! { "map of " (self.kind(values)) },
            "integer" => html! { "whole number" },
            kind => html! { (kind) },
        }
    }
}

fn joined(kinds: impl Iterator<Item = Markup>) -> Markup {
    html! { @for (place, kind) in kinds.enumerate() { @if place > 0 { " or " } (kind) } }
}

/// What a value must be like, beyond its kind.
fn rules(schema: &Value) -> Vec<String> {
    let number = |key: &str| schema[key].as_u64();
    let span = |low: Option<u64>, high: Option<u64>, unit: &str| match (low, high) {
        (Some(low), Some(high)) => Some(format!("{} to {}{unit}", whole(low), whole(high))),
        (Some(low), None) => Some(format!("{} or more{unit}", whole(low))),
        (None, Some(high)) => Some(format!("at most {}{unit}", whole(high))),
        (None, None) => None,
    };
    let pattern = schema["pattern"].as_str();
    let default = schema
        .get("default")
        .map(|value| format!("default {value}"));
    [
        span(number("minimum"), number("maximum"), ""),
        span(number("minLength"), number("maxLength"), " characters"),
        pattern.map(|pattern| format!("matches {pattern}")),
        default,
    ]
    .into_iter()
    .flatten()
    .collect()
}
