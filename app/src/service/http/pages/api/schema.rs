//! Schemas of the OpenAPI document in words and tables.

use debora::measure::answer::row_for_each;
use debora::measure::words::whole;
use maud::{Markup, html};
use serde_json::Value;

use crate::document::HtmlTable;

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

/// A field of a body, or a parameter of an address.
struct SchemaField<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
    /// What has its description.
    described: &'a Value,
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
                (self.table("Fields", "Field", fields))
            }
        }
    }

    /// Fields with their schemas, and whether they are required. What is flattened into an object has its fields there.
    fn fields<'a>(&'a self, schema: &'a Value) -> Vec<SchemaField<'a>> {
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
        fields.extend(own.map(|(name, field)| SchemaField {
            name,
            schema: field,
            required: required(name),
            described: field,
        }));
        fields
    }

    /// The parameters of an address.
    pub fn parameters(&self, parameters: &[Value]) -> Markup {
        let parameters = parameters.iter().map(|parameter| SchemaField {
            name: parameter["name"].as_str().unwrap_or_default(),
            schema: &parameter["schema"],
            required: parameter["required"] == true,
            described: parameter,
        });
        self.table("Parameters", "Parameter", parameters.collect())
    }

    fn table(&self, label: &str, first: &str, fields: Vec<SchemaField>) -> Markup {
        let table = row_for_each(fields)
            .words(first, |field| {
                html! { code { (field.name) } @if field.required { " " span.small { "required" } } }
            })
            .words("Type", |field| {
                html! { (self.kind(field.schema)) @for rule in rules(field.schema) { br; span.small { (rule) } } }
            })
            .words("Meaning", SchemaField::meaning);
        HtmlTable::plain(label, table.table()).markup()
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

impl SchemaField<'_> {
    fn meaning(&self) -> Markup {
        // Of a value that may be null, the other alternative says what it is.
        let alternatives = self.schema["oneOf"].as_array().into_iter().flatten();
        let text = [self.described]
            .into_iter()
            .chain(alternatives)
            .find_map(|schema| schema["description"].as_str());
        prose(text.unwrap_or_default())
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
