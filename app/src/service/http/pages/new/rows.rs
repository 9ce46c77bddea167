//! The fields, group by group.

use maud::{Markup, html};

use super::NewPage;
use super::draft::editable;
use super::form::Errors;

/// One side of the page.
pub fn fields(view: &NewPage, errors: &Errors) -> Markup {
    let spec = editable(&view.draft.was);
    let margins = spec.is_some_and(|spec| spec.has(&["safe", "margin"]));
    let form = Fields {
        view,
        errors,
        margins,
    };
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
    /// Whether the safe strategy's margins are stated, and not its costs.
    margins: bool,
}

/// What is typed into a field.
#[derive(Clone, Copy, PartialEq)]
enum Typed {
    Text,
    Number,
}

impl Fields<'_> {
    fn get(&self, field: &str) -> &str {
        self.view.draft.get(field)
    }

    fn is_hard(&self) -> bool {
        self.get("policy") == "hard"
    }

    fn actions(&self) -> Markup {
        let count = self.view.draft.actions();
        html! {
            fieldset.group {
                legend { "What is tried" }
                (self.input("name", "Name of the experiment", "", Typed::Text))
                (self.choice("policy", "Policy", &[
                    ("free", "free: find the best action; costs are not limited"),
                    ("soft", "soft: keep each cost's limit on average"),
                    ("hard", "hard: keep each limit in every round, from a safe strategy on"),
                ]))
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
        html! {
            @for action in 0..count {
                @let field = format!("actions.{action}");
                div.row {
                    (self.input(&field, &format!("Action {}", action + 1), "", Typed::Text))
                    @if self.is_hard() {
                        (self.input(&format!("safe.strategy.{action}"), "Probability in the safe strategy", "0", Typed::Number))
                    }
                    (remove(&format!("remove-action-{action}"), &format!("Remove action {}", action + 1)))
                }
            }
        }
    }

    fn reward(&self) -> Markup {
        html! {
            fieldset.group {
                legend { "Reward, to be maximised" }
                (self.input("reward.name", "Name of the reward", "reward", Typed::Text))
                div.row {
                    (self.ends("reward.range", "Range", ["0", "1"]))
                    (self.ends("reward.mean", "Declared means", ["", ""]))
                    (self.input("service.impute.reward", "Imputed", "the worst", Typed::Number))
                }
            }
        }
    }

    fn costs(&self) -> Markup {
        html! {
            @for cost in 0..self.view.draft.costs() { (self.cost(cost)) }
            @if !self.view.draft.large { p { button.outline.secondary name="do" value="add-cost" { "Add a cost with a limit" } } }
        }
    }

    fn cost(&self, cost: usize) -> Markup {
        let field = |name: &str| format!("cost.{cost}.{name}");
        let known = if self.margins {
            "Margin of the safe strategy"
        } else {
            "Cost of the safe strategy"
        };
        html! {
            fieldset.group {
                legend { "Cost " (cost + 1) ", to be limited" }
                div.row {
                    (self.input(&field("name"), "Name of the cost", "", Typed::Text))
                    (self.input(&field("threshold"), "Limit on its mean", "", Typed::Number))
                    (remove(&format!("remove-cost-{cost}"), &format!("Remove cost {}", cost + 1)))
                }
                div.row {
                    (self.ends(&field("range"), "Range", ["0", "1"]))
                    (self.ends(&field("mean"), "Declared means", ["", ""]))
                    (self.input(&format!("service.impute.cost.{cost}"), "Imputed", "the worst", Typed::Number))
                    @if self.is_hard() { (self.input(&format!("safe.cost.{cost}"), known, "", Typed::Number)) }
                }
            }
        }
    }

    fn promise(&self) -> Markup {
        html! {
            fieldset.group {
                legend { "How long, and what is promised" }
                (self.input("horizon", "Horizon: rounds in all", "", Typed::Number))
                div.row {
                    (self.input("rho", "rho: chance that two runs differ", "", Typed::Number))
                    (self.input("delta", "delta: chance that bounds fail", "0.01", Typed::Number))
                }
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
                div.row {
                    (self.choice("service.on_wait", "When an epoch waits", &[
                        ("", "as by default: hold"),
                        ("hold", "hold: ask callers to come back"),
                        ("serve", "serve: decide in overtime, uncounted"),
                    ]))
                    (self.input("service.outcome_wait", "Impute after, such as 7d or 12h", "never", Typed::Text))
                }
            }
        }
    }

    fn holdback(&self) -> Markup {
        let draft = &self.view.draft;
        let names = (0..draft.actions()).map(|action| draft.get(&format!("actions.{action}")));
        let mut options = vec![("", "none")];
        options.extend(names.map(|name| (name, name)));
        let action = "service.holdback.action";
        html! {
            fieldset.group {
                legend { "Holdback: who stays outside, for comparison" }
                div.row {
                    (self.input("service.holdback.share", "Share of requests, such as 0.05", "none", Typed::Number))
                    @if draft.large { (self.input(action, "Action they get", "none", Typed::Text)) }
                    @else { (self.choice(action, "Action they get", &options)) }
                }
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

    fn input(&self, field: &str, label: &str, placeholder: &str, typed: Typed) -> Markup {
        let invalid = self.errors.at(field).map(|_| "true");
        // Not of type number, which forbids 1e6 and 1_000_000 or shows them otherwise.
        let mode = (typed == Typed::Number).then_some("decimal");
        html! {
            div.field {
                label for={ "f-" (field) } { (label) }
                input id={ "f-" (field) } name=(field) value=(self.get(field)) placeholder=(placeholder) inputmode=[mode] dir="auto"
                    autocomplete="off" spellcheck="false" aria-invalid=[invalid] aria-describedby={ "e-" (field) };
                (self.fault(field))
            }
        }
    }

    /// Two numbers of one interval.
    fn ends(&self, field: &str, label: &str, placeholders: [&str; 2]) -> Markup {
        let invalid = self.errors.at(field).map(|_| "true");
        html! {
            fieldset.field {
                legend { (label) }
                div.ends {
                    @for (end, word) in ["least", "largest"].iter().enumerate() {
                        @let name = format!("{field}.{end}");
                        input id={ "f-" (name) } name=(name) value=(self.get(&name)) placeholder=(placeholders[end]) inputmode="decimal"
                            aria-label=(word) autocomplete="off" aria-invalid=[invalid] aria-describedby={ "e-" (field) };
                    }
                }
                (self.fault(field))
            }
        }
    }

    fn choice(&self, field: &str, label: &str, options: &[(&str, &str)]) -> Markup {
        let value = self.get(field);
        let known = options.iter().any(|(option, _)| *option == value);
        html! {
            div.field {
                label for={ "f-" (field) } { (label) }
                select id={ "f-" (field) } name=(field) aria-describedby={ "e-" (field) }
                    aria-invalid=[self.errors.at(field).map(|_| "true")] {
                    // What the text says stays, though it is none of these.
                    @if !known { option value=(value) selected { (value) } }
                    @for (option, words) in options { option value=(option) selected[*option == value] { (words) } }
                }
                (self.fault(field))
            }
        }
    }

    /// The place for a message: always there, so that it is read aloud when it is filled.
    fn fault(&self, field: &str) -> Markup {
        html! { small.fault id={ "e-" (field) } aria-live="polite" { @if let Some(message) = self.errors.at(field) { (message) } } }
    }
}

fn remove(asked: &str, label: &str) -> Markup {
    html! { button.remove.outline.secondary name="do" value=(asked) aria-label=(label) title=(label) { "×" } }
}
