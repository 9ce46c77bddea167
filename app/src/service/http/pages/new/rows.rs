//! The fields, group by group.

use debora::spec::{FormKey, FormKind, form_keys};
use maud::{Markup, html};

use super::NewPage;
use super::fields::FormField;
use super::form::Errors;

/// One side of the page.
pub fn fields(view: &NewPage, errors: &Errors) -> Markup {
    let form = Fields { view, errors };
    html! {
        (form.actions())
        (form.reward())
        (form.costs())
        (form.promise())
        (form.waiting())
        (form.holdback())
        (form.identity())
    }
}

struct Fields<'a> {
    view: &'a NewPage,
    errors: &'a Errors,
}

type Keys = Vec<&'static FormKey>;

/// The keys right below a path, in the table's order.
fn section(path: &str) -> Keys {
    let is_below = |key: &&FormKey| {
        let name = key.path.strip_prefix(path);
        name.is_some_and(|name| !name.contains('.'))
    };
    form_keys().iter().filter(is_below).collect()
}

/// Whether a key is a number: those of the top level say what is promised, the others what is tried.
fn is_number(key: &FormKey) -> bool {
    key.kind == FormKind::Number
}

impl Fields<'_> {
    fn is_hard(&self) -> bool {
        self.view.draft.get("policy") == "hard"
    }

    fn actions(&self) -> Markup {
        let count = self.view.draft.actions();
        html! {
            fieldset.group {
                legend { "What is tried" }
                @for key in section("").into_iter().filter(|key| !is_number(key)) { (self.field(key, None)) }
                h3 { "Actions" }
                @if self.view.draft.large {
                    p { "These actions and costs are too many for a form: they stand in the text alone, and are changed there." }
                }
                // Hundreds of rows are folded, as nobody fills them in one by one.
                @else if count > 20 { details { summary { (count) " actions" } (self.action_rows(count)) } }
                @else { (self.action_rows(count)) }
                (self.fault("actions"))
                @if self.is_hard() { (self.fault("safe")) }
                @if !self.view.draft.large { button.outline.secondary name="do" value="add-action" { "Add an action" } }
            }
        }
    }

    fn action_rows(&self, count: usize) -> Markup {
        let mut keys = section("actions.");
        if self.is_hard() {
            keys.extend(section("safe.strategy."));
        }
        html! {
            @for action in 0..count {
                div.row {
                    (self.each(&keys, Some(action)))
                    (remove(&format!("remove-action-{action}"), &format!("Remove action {}", action + 1)))
                }
            }
        }
    }

    fn reward(&self) -> Markup {
        let mut keys = section("reward.");
        keys.extend(section("service.impute."));
        html! {
            fieldset.group {
                legend { "Reward, to be maximised" }
                (self.after_the_first(&keys))
            }
        }
    }

    fn costs(&self) -> Markup {
        let (needed, mut others): (Keys, Keys) =
            section("cost.#.").into_iter().partition(|key| key.required);
        others.extend(section("service.impute.cost."));
        if self.is_hard() {
            others.extend(self.known_by());
        }
        html! {
            @for cost in 0..self.view.draft.costs() {
                fieldset.group {
                    legend { "Cost " (cost + 1) ", to be limited" }
                    div.row {
                        (self.each(&needed, Some(cost)))
                        (remove(&format!("remove-cost-{cost}"), &format!("Remove cost {}", cost + 1)))
                    }
                    div.row { (self.each(&others, Some(cost))) }
                }
            }
            @if !self.view.draft.large { p { button.outline.secondary name="do" value="add-cost" { "Add a cost with a limit" } } }
        }
    }

    /// The safe strategy's costs, or the margins that a spec states in their place.
    fn known_by(&self) -> Keys {
        let shown = self.view.draft.shown.as_ref();
        let margins = shown.is_some_and(|shown| shown.has(&["safe", "margin"]));
        section(if margins {
            "safe.margin."
        } else {
            "safe.cost."
        })
    }

    fn promise(&self) -> Markup {
        let numbers: Keys = section("")
            .into_iter()
            .filter(|key| is_number(key))
            .collect();
        html! {
            fieldset.group {
                legend { "How long, and what is promised" }
                (self.after_the_first(&numbers))
                label.check {
                    input type="checkbox" name="blind" value="yes" checked[self.view.draft.blind];
                    "Run it even if the plan is blind: nothing will ever be compared"
                }
            }
        }
    }

    fn waiting(&self) -> Markup {
        html! {
            fieldset.group {
                legend { "While outcomes are outstanding" }
                div.row { (self.each(&section("service."), None)) }
            }
        }
    }

    fn holdback(&self) -> Markup {
        html! {
            fieldset.group {
                legend { "Holdback: who stays outside, for comparison" }
                div.row { (self.each(&section("service.holdback."), None)) }
            }
        }
    }

    fn identity(&self) -> Markup {
        let draft = &self.view.draft;
        html! {
            fieldset.group {
                legend { "Address and key" }
                div.row {
                    div.field {
                        label for="f-id" { "Id in addresses" }
                        // The browser checks what the service would refuse, before anything is sent.
                        input #f-id name="id" value=(draft.id) pattern="[a-z0-9\\-]+" maxlength="128" placeholder="drawn at random"
                            autocomplete="off" aria-invalid=[self.errors.at("id").map(|_| "true")] aria-describedby="e-id";
                        (self.fault("id"))
                    }
                    div.field {
                        label for="f-key" { "Key; another team's replicates" }
                        // Not kept by the browser: it is secret until the experiment is over.
                        input #f-key name="key" value=(draft.key) autocomplete="off" maxlength="32" placeholder="drawn at random"
                            aria-invalid=[self.errors.at("key").map(|_| "true")] aria-describedby="e-key";
                        (self.fault("key"))
                    }
                }
            }
        }
    }

    fn each(&self, keys: &[&'static FormKey], row: Option<usize>) -> Markup {
        html! { @for key in keys { (self.field(key, row)) } }
    }

    /// The first on a line of its own, and the others in a row.
    fn after_the_first(&self, keys: &[&'static FormKey]) -> Markup {
        let (first, others) = keys.split_at(1);
        html! { (self.each(first, None)) div.row { (self.each(others, None)) } }
    }

    fn field(&self, key: &'static FormKey, row: Option<usize>) -> Markup {
        let field = FormField::new(key, row);
        match &key.kind {
            FormKind::Ends => self.ends(field),
            FormKind::Word(words) => self.choice(field, &options(key, words)),
            FormKind::Action if !self.view.draft.large => self.choice(field, &self.names(key)),
            _ => self.input(field),
        }
    }

    fn input(&self, field: FormField) -> Markup {
        let (key, name) = (field.key, field.name());
        let invalid = self.errors.at(&name).map(|_| "true");
        // Not of type number, which forbids 1e6 and 1_000_000 or shows them otherwise.
        let mode = is_number(key).then_some("decimal");
        html! {
            div.field {
                label for={ "f-" (name) } { (field.label()) }
                input id={ "f-" (name) } name=(name) value=(self.view.draft.value(field)) placeholder=(key.unset) inputmode=[mode] dir="auto"
                    autocomplete="off" spellcheck="false" aria-invalid=[invalid] aria-describedby={ "e-" (name) };
                (self.fault(&name))
            }
        }
    }

    /// Two numbers of one interval.
    fn ends(&self, field: FormField) -> Markup {
        let name = field.name();
        let invalid = self.errors.at(&name).map(|_| "true");
        let mut unset = field.key.unset.trim_matches(['[', ']']).split(", ");
        html! {
            fieldset.field {
                legend { (field.label()) }
                div.ends {
                    @for (end, word) in ["least", "largest"].iter().enumerate() {
                        @let field = field.end(end);
                        input id={ "f-" (field.name()) } name=(field.name()) value=(self.view.draft.value(field)) placeholder=(unset.next().unwrap_or_default())
                            inputmode="decimal" aria-label=(word) autocomplete="off" aria-invalid=[invalid] aria-describedby={ "e-" (name) };
                    }
                }
                (self.fault(&name))
            }
        }
    }

    fn choice(&self, field: FormField, options: &[(String, String)]) -> Markup {
        let (name, value) = (field.name(), self.view.draft.value(field));
        let known = options.iter().any(|(option, _)| *option == value);
        html! {
            div.field {
                label for={ "f-" (name) } { (field.label()) }
                select id={ "f-" (name) } name=(name) aria-describedby={ "e-" (name) }
                    aria-invalid=[self.errors.at(&name).map(|_| "true")] {
                    // What the text says stays, though it is none of these.
                    @if !known { option value=(value) selected { (value) } }
                    @for (option, words) in options { option value=(option) selected[*option == value] { (words) } }
                }
                (self.fault(&name))
            }
        }
    }

    /// The actions to choose from, or none.
    fn names(&self, key: &FormKey) -> Vec<(String, String)> {
        let draft = &self.view.draft;
        let names = (0..draft.actions()).map(|action| draft.get(&format!("actions.{action}")));
        let none = (String::new(), key.unset.clone());
        std::iter::once(none)
            .chain(names.map(|name| (name.clone(), name)))
            .collect()
    }

    /// The place for a message: always there, so that it is read aloud when it is filled.
    fn fault(&self, field: &str) -> Markup {
        html! { small.fault id={ "e-" (field) } aria-live="polite" { @if let Some(message) = self.errors.at(field) { (message) } } }
    }
}

/// Words to choose from, with what they mean; first what holds without a choice.
fn options(key: &FormKey, words: &[(&str, &str)]) -> Vec<(String, String)> {
    let default = (String::new(), format!("as by default: {}", key.unset));
    let default = (!key.required).then_some(default);
    let words = words.iter();
    let words = words.map(|(word, meaning)| ((*word).to_owned(), format!("{word}: {meaning}")));
    default.into_iter().chain(words).collect()
}

fn remove(asked: &str, label: &str) -> Markup {
    html! { button.remove.outline.secondary name="do" value=(asked) aria-label=(label) title=(label) { "×" } }
}
