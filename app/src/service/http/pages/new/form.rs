//! The page: fields on one side, the text and the plan on the other, the simulation below.

use debora::spec::{FormKind, form_keys};
use maud::{Markup, html};

use super::fields::{FormField, field_of, names};
use super::{NewPage, plan, rows, simulation};
use crate::service::http::error::ApiError;

/// What stands in the page.
pub fn content(view: &NewPage) -> Markup {
    html! {
        h1 { "New experiment" }
        p {
            "Form and text stay in sync; edit either. Nothing is decided before you create it, and then nothing of it can be changed."
        }
        (form(view))
    }
}

/// All of it is one form: every button sends everything, and nothing typed is lost.
pub fn form(view: &NewPage) -> Markup {
    let errors = Errors::of(view);
    html! {
        form #draft.new method="post" action="/new" {
            // The first button is what the enter key presses: it must not take a row away.
            button name="do" value="plan" hidden tabindex="-1" { "Update" }
            // What it was and what was drawn, so that the answer knows what changed and a second click is known as one.
            input type="hidden" name="drawn" value=(view.draft.drawn);
            @for (name, text) in [("was", &view.draft.was), ("safe", &view.draft.safe)] {
                textarea name=(name) hidden aria-hidden="true" tabindex="-1" { "\n" (text) }
            }
            div.sides {
                div #fields { (rows::fields(view, &errors)) }
                div #beside {
                    (text(view, &errors))
                    (plan::section(view))
                }
            }
            @if !view.draft.large { (simulation::section(view)) }
            div #create {
                @if let Some(refusal) = &errors.elsewhere { div.alarm role="alert" { p { strong { (refusal) } } } }
                button.primary name="do" value="create" { "Create the experiment" }
                // With a script the plan follows by itself.
                button.outline.secondary.scriptless name="do" value="plan" { "Update form, text and plan" }
            }
        }
    }
}

fn text(view: &NewPage, errors: &Errors) -> Markup {
    let fault = errors.in_text.as_deref();
    html! {
        h2.first { label for="spec" { "Spec" } }
        p.small #spec-hint { "The same as a TOML file, which " code { "debora plan" } " and " code { "debora replicate" } " read, too." }
        textarea #spec.spec name="spec" spellcheck="false" autocapitalize="off" required
            aria-describedby="spec-fault spec-hint" aria-invalid=[fault.map(|_| "true")] { "\n" (view.draft.spec) }
        p #spec-fault.fault aria-live="polite" { @if let Some(fault) = fault { (fault) } }
    }
}

/// What is wrong, and where it is shown.
pub struct Errors {
    /// The field of the form, and the message.
    at: Option<(String, String)>,
    /// Beside the text.
    in_text: Option<String>,
    /// Beside the button.
    elsewhere: Option<String>,
}

impl Errors {
    fn of(view: &NewPage) -> Self {
        let mut errors = Self {
            at: None,
            in_text: None,
            elsewhere: None,
        };
        // A refusal says why nothing was created, and is about the same spec if that is at fault.
        let error = view.refusal.as_ref().or(view.planned.as_ref().err());
        let Some(error) = error else {
            return errors;
        };
        let message = match error.code {
            // The interface's remedy is a value in its body, the page's a box.
            "blind" => "the plan is blind; use the horizon that the plan names, or tick the box to run it anyway".to_owned(),
            _ => bare(&error.message),
        };
        let place = error.place.as_deref();
        let fault = place.and_then(|place| place.field.as_deref());
        let named = fault.zip(view.draft.shown.as_ref());
        let field = named.map(|(fault, shown)| field_of(shown, fault));
        let field = field.or_else(|| field_by_value(view, error));
        errors.in_text = view.planned.as_ref().err().map(in_text);
        if view.refusal.is_some() {
            errors.elsewhere = Some(format!("It was not created: {message}"));
        }
        errors.at = field.map(|field| (field, message));
        errors
    }

    /// What is wrong with a field, or with an end of it if it is an interval.
    pub fn at(&self, field: &str) -> Option<&str> {
        let (at, message) = self.at.as_ref()?;
        let within = at.strip_prefix(field)?;
        let is_interval = field.ends_with(".range") || field.ends_with(".mean");
        (within.is_empty() || (is_interval && [".0", ".1"].contains(&within))).then_some(message)
    }
}

/// Errors about an id or a name have no place in the spec.
fn field_by_value(view: &NewPage, error: &ApiError) -> Option<String> {
    if error.code.starts_with("id_") {
        return Some("id".into());
    }
    let value = error
        .value
        .as_ref()
        .filter(|_| error.code == "name")?
        .as_str()?;
    let shown = view.draft.shown.as_ref()?;
    let texts = form_keys().iter().filter(|key| key.kind == FormKind::Text);
    let mut fields = texts.filter_map(|key| {
        let row = match key.rows {
            Some(rows) => Some(names(shown, rows).position(|name| name == value)?),
            None => None,
        };
        Some(FormField::new(key, row)).filter(|field| field.get(shown) == value)
    });
    fields.next().map(FormField::name)
}

/// An error as it stands beside the text, with its place.
fn in_text(error: &ApiError) -> String {
    let message = bare(&error.message);
    let place = error.place.as_deref();
    match place.and_then(|place| Some((place.line?, place.column?))) {
        Some((line, column)) => format!("Line {line}, column {column}: {message}"),
        None => message,
    }
}

/// A message of the spec's parser without the file, the line and its text, which stand beside it anyway.
fn bare(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let Some(rest) = first.strip_prefix("spec:") else {
        return first.to_owned();
    };
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.trim_start_matches(':').trim_start().to_owned()
}
