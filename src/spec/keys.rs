//! The format at a glance: every key of a spec, the shape of its value, and what to write where it is missing.
//!
//! Readers take keys, remedies and words from here, and so does the [`schema`](super::schema) that editors check a spec with: a
//! key that only one of them knew would be an error to the other. A [form](super::form) takes its fields from here, too: those with
//! a label, in this order.

use crate::lab::world::CONCENTRATIONS;
use crate::problem::{ACTIONS_MAX, CAUTIONS, GROWTHS, HORIZON_MAX};
use crate::spec::problem::{OUTSIDE, POLICIES, PROFILES};
use crate::spec::service::ON_WAIT;
use crate::spec::world::{KINDS, KindWord, LAWS};

/// A key of a section.
pub(super) struct SpecKey {
    pub name: &'static str,
    pub shape: KeyShape,
    pub presence: KeyPresence,
    /// What is assumed where it is missing, as JSON.
    pub default: Option<&'static str>,
    /// The kinds of world that use it; none for keys that are not of one kind.
    pub kinds: &'static [KindWord],
    /// What it means: the help that editors show beside it.
    pub help: &'static str,
    /// What a form calls it; empty if that leaves it to the text.
    pub label: &'static str,
    /// What holds where it is missing, in a word, if that is no default.
    pub unset: &'static str,
    /// What each of its words means.
    pub meanings: &'static [&'static str],
}

/// Whether a key must be there, and what to write if it must.
pub(super) enum KeyPresence {
    Required(&'static str),
    /// Other values decide.
    Depends(&'static str),
    Optional,
}

/// What a value can be, as far as it can be said without looking at others.
pub(super) enum KeyShape {
    /// Another value decides.
    Any,
    Text,
    /// A text that is not empty.
    Name,
    /// The name of an action.
    Action,
    Word(&'static [&'static str]),
    Number,
    /// A number above 0.
    Positive,
    /// A number from the first to the second.
    Within(f64, f64),
    /// A chance as rho and delta are, neither 0 nor 1.
    Chance,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A key of draws.
    Key,
    /// Names, or how many.
    Actions(u64),
    /// A share, neither 0 nor 1.
    Share,
    /// Two numbers, [least, largest].
    Ends,
    /// The same, or a table with one for each action.
    EndsOfCost,
    /// A whole number with its unit of time.
    Wait,
    /// A list with something in it.
    List(&'static KeyShape),
    /// One entry per action: a list in their order, or a table by their names.
    EachAction(&'static KeyShape),
    /// A table by names that the spec itself gives.
    ByName(&'static KeyShape),
    /// A table by the names of actions.
    ByAction(&'static KeyShape),
    /// A table by the names of costs.
    ByCost(&'static KeyShape),
    Section(&'static [SpecKey]),
    /// As many sections as there are.
    Sections(&'static [SpecKey]),
}

/// The top level.
pub(super) const TOP: &[SpecKey] = &[
    key("name", KeyShape::Text, "What the experiment is called.").label("Name of the experiment"),
    key(
        "policy",
        KeyShape::Word(&words(POLICIES)),
        "free: no limits. soft: limits on average. hard: safe in every round, given a safe strategy. It may be left out where no cost has a threshold: then it is free.",
    )
    .depends("some cost has a threshold: write policy = \"soft\" to keep limits on average, or \"hard\" to keep them in every round")
    .label("Policy")
    .meanings(&[
        "find the best action; costs are not limited",
        "keep each cost's limit on average",
        "keep each limit in every round, from a safe strategy on",
    ]),
    key(
        "horizon",
        KeyShape::Whole(1, HORIZON_MAX),
        "How many rounds there will be in all; 1e8 works too.",
    )
    .need("give the number of rounds you will run, say horizon = 1e8")
    .label("Horizon: rounds in all"),
    key(
        "rho",
        KeyShape::Chance,
        "Two runs with one key differ with at most this probability.",
    )
    .need("give the chance of differing decisions you accept, say rho = 0.1")
    .label("rho: chance that two runs differ"),
    key(
        "delta",
        KeyShape::Chance,
        "Safety fails with at most this probability, the printed bounds with at most twice that.",
    )
    .default("0.01")
    .label("delta: chance that bounds fail"),
    key(
        "profile",
        KeyShape::Word(&words(PROFILES)),
        "tight: as replicable and as safe, with far fewer rounds. paper: the published constants.",
    )
    .default("\"tight\""),
    key(
        "growth",
        KeyShape::Whole(*GROWTHS.start() as u64, *GROWTHS.end() as u64),
        "Counts grow by this factor between estimates; of profile tight only.",
    )
    .default("8"),
    key(
        "explore",
        KeyShape::Share,
        "The share of the horizon that exploration takes, in place of the length that costs least: for the best final choice. Of profile tight only.",
    )
    .label("Share of the rounds for exploration")
    .unset("by formula"),
    key(
        "caution",
        KeyShape::Within(*CAUTIONS.start(), *CAUTIONS.end()),
        "How much of an estimate's uncertainty counts against a cost: 0 puts rewards first, 1 limits. Of policy soft in profile tight only.",
    )
    .label("Caution: 0 rewards first, 1 limits first")
    .unset("0.5"),
    key(
        "key",
        KeyShape::Key,
        "The randomness that two runs share: a whole number, or 32 hexadecimal digits in quotes. The service draws one.",
    )
    .default("0"),
    key(
        "outside",
        KeyShape::Word(&words(OUTSIDE)),
        "What happens to feedback outside its range. refuse: it is an error. clip: it counts as the range's end.",
    )
    .default("\"refuse\""),
    key(
        "actions",
        KeyShape::Actions(ACTIONS_MAX as u64),
        "What can be chosen, by name; or how many there are, which names them a1, a2 and so on.",
    )
    .need("name at least two, say actions = [\"a\", \"b\"]")
    .label("Action"),
    key("reward", KeyShape::Section(REWARD), "What to maximise."),
    key(
        "cost",
        KeyShape::Sections(COST),
        "What to limit, or to watch: one [[cost]] for each.",
    ),
    key(
        "safe",
        KeyShape::Section(SAFE),
        "A strategy that is known to be strictly safe: policy hard needs one, the others use none.",
    ),
    key(
        "world",
        KeyShape::Section(WORLD),
        "For simulation only: what is true, unknown to the policy.",
    ),
    key(
        "service",
        KeyShape::Section(SERVICE),
        "The rules of a live experiment.",
    ),
];

pub(super) const REWARD: &[SpecKey] = &[
    key("name", KeyShape::Name, "What the reward is called.")
        .default("\"reward\"")
        .label("Name of the reward"),
    RANGE,
];

pub(super) const COST: &[SpecKey] = &[
    key("name", KeyShape::Name, "What the cost is called.")
        .need("give each cost one, say name = \"price\"")
        .label("Name of the cost"),
    key(
        "range",
        KeyShape::EndsOfCost,
        "The least and the largest value that a round can bring, in your units; or a table with those of each action. Equal ends there: the cost is known.",
    )
    .default("[0, 1]")
    .label("Range"),
    key(
        "threshold",
        KeyShape::Number,
        "The limit on the cost's mean, in the units of its range. Without it the cost is watched: tallied, and limiting nothing.",
    )
    .label("Limit on its mean"),
];

const RANGE: SpecKey = key(
    "range",
    KeyShape::Ends,
    "The least and the largest value that a round can bring, in your units.",
)
.default("[0, 1]")
.label("Range");

pub(super) const SAFE: &[SpecKey] = &[
    key(
        "strategy",
        KeyShape::ByAction(&KeyShape::Within(0.0, 1.0)),
        "The probability of each action; those left out have 0.",
    )
    .need("give a strategy known to be safe, say strategy = { small = 1.0 }")
    .label("Probability in the safe strategy")
    .unset("0"),
    key(
        "cost",
        KeyShape::ByCost(&KeyShape::Number),
        "What the strategy costs at most, by cost; or give margin.",
    )
    .label("Cost of the safe strategy"),
    key(
        "margin",
        KeyShape::ByCost(&KeyShape::Positive),
        "How far the strategy stays below each threshold, at least; or give cost.",
    )
    .label("Margin of the safe strategy"),
];

/// The kinds whose feedback the spec itself states.
pub(super) const STATED: &[KindWord] = &[KindWord::Bernoulli, KindWord::Beta, KindWord::Discrete];

pub(super) const WORLD: &[SpecKey] = &[
    key(
        "kind",
        KeyShape::Word(&words(KINDS)),
        "bernoulli: either end of the range. beta: a beta law. discrete: given values. table: recorded rows. random: means drawn by the key.",
    )
    .need("write kind = \"bernoulli\", \"beta\", \"discrete\", \"table\" or \"random\""),
    key(
        "key",
        KeyShape::Key,
        "The randomness that two runs do not share; by default it follows from the policy's key.",
    ),
    key(
        "reward",
        KeyShape::EachAction(&KeyShape::Any),
        "Per action, in their order or by their names: the mean reward, or under kind discrete its values and probabilities.",
    )
    .need("give one entry per action")
    .of(STATED),
    key(
        "cost",
        KeyShape::ByCost(&KeyShape::EachAction(&KeyShape::Any)),
        "By cost, and then as the reward: one entry per action.",
    )
    .depends("give one entry per action")
    .of(STATED),
    key(
        "concentration",
        KeyShape::Within(*CONCENTRATIONS.start(), *CONCENTRATIONS.end()),
        "How close values stay to their mean.",
    )
    .need("give a positive number, say 10, or a larger one for less spread")
    .of(&[KindWord::Beta]),
    key(
        "file",
        KeyShape::Text,
        "A CSV file, relative to the spec, with the columns action, reward and each cost.",
    )
    .need("name a CSV file with the header action, reward and the names of the costs")
    .of(&[KindWord::Table]),
    key(
        "columns",
        KeyShape::ByName(&KeyShape::Text),
        "What the file calls action, reward and the costs; all other columns are then ignored.",
    )
    .of(&[KindWord::Table]),
    key(
        "law",
        KeyShape::Word(&words(LAWS)),
        "How the mean rewards lie. uniform: anywhere. gap: one ahead of equals. stairs: equal steps. sparse: few ahead of many.",
    )
    .need("write law = \"uniform\", \"gap\", \"stairs\" or \"sparse\"")
    .of(&[KindWord::Random]),
    key(
        "gap",
        KeyShape::Positive,
        "A difference of mean rewards, in the reward's units; not of law uniform.",
    )
    .depends("give a difference of mean rewards, in the reward's units")
    .of(&[KindWord::Random]),
    key(
        "worlds",
        KeyShape::Whole(1, HORIZON_MAX),
        "How many worlds there are; pair j meets world j mod this.",
    )
    .default("1")
    .of(&[KindWord::Random]),
    key(
        "index",
        KeyShape::Whole(0, HORIZON_MAX),
        "The number of the first world.",
    )
    .default("0")
    .of(&[KindWord::Random]),
];

/// What one action can give of one quantity.
pub(super) const LAW: &[SpecKey] = &[
    key("values", KeyShape::List(&KeyShape::Number), "The values.")
        .need("list the values this action can give"),
    key(
        "probabilities",
        KeyShape::List(&KeyShape::Within(0.0, 1.0)),
        "The probability of each value; they sum to 1.",
    )
    .need("give one for each value"),
];

pub(super) const SERVICE: &[SpecKey] = &[
    key(
        "on_wait",
        KeyShape::Word(&words(ON_WAIT)),
        "While all rounds of an epoch are handed out and outcomes are outstanding, hold: requests are asked to come back. serve: they get decisions that no estimate counts.",
    )
    .default("\"hold\"")
    .label("When an epoch waits")
    .meanings(&["ask callers to come back", "decide in overtime, uncounted"]),
    key(
        "outcome_wait",
        KeyShape::Wait,
        "After how long a missing outcome is imputed, as \"7d\", \"12h\", \"30m\" or \"45s\"; by default never.",
    )
    .label("Impute after, such as 7d or 12h")
    .unset("never"),
    key(
        "impute",
        KeyShape::Section(IMPUTE),
        "What is imputed; by default the worst values.",
    ),
    key(
        "holdback",
        KeyShape::Section(HOLDBACK),
        "A share of requests that stays outside the experiment and gets one action, so that what the experiment gains can be seen.",
    ),
];

pub(super) const HOLDBACK: &[SpecKey] = &[
    key(
        "share",
        KeyShape::Chance,
        "The share of request keys that is held back, above 0 and below 1.",
    )
    .need("give the share of requests to hold back, say share = 0.05")
    .label("Share of requests, such as 0.05")
    .unset("none"),
    key(
        "action",
        KeyShape::Action,
        "The action that they get, by name. Policy hard allows one that is the whole safe strategy.",
    )
    .need("name the action that they get, say action = \"small\"")
    .label("Action they get")
    .unset("none"),
];

pub(super) const IMPUTE: &[SpecKey] = &[
    key("reward", KeyShape::Number, "In the reward's units.")
        .label("Imputed")
        .unset("the worst"),
    key(
        "cost",
        KeyShape::ByCost(&KeyShape::Number),
        "By cost, in its units; those left out have their worst value.",
    )
    .label("Imputed")
    .unset("the worst"),
];

const fn key(name: &'static str, shape: KeyShape, help: &'static str) -> SpecKey {
    SpecKey {
        name,
        shape,
        presence: KeyPresence::Optional,
        default: None,
        kinds: &[],
        help,
        label: "",
        unset: "",
        meanings: &[],
    }
}

/// The words of a list, without what they stand for.
const fn words<T: Copy, const N: usize>(choices: [(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut number = 0;
    // Iterators are not for constants yet.
    while number < N {
        words[number] = choices[number].0;
        number += 1;
    }
    words
}

// Field by field, as a constant can be changed but not taken apart: it might have to be dropped.
impl SpecKey {
    const fn need(mut self, remedy: &'static str) -> Self {
        self.presence = KeyPresence::Required(remedy);
        self
    }

    const fn depends(mut self, remedy: &'static str) -> Self {
        self.presence = KeyPresence::Depends(remedy);
        self
    }

    const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    const fn unset(mut self, word: &'static str) -> Self {
        self.unset = word;
        self
    }

    const fn meanings(mut self, meanings: &'static [&'static str]) -> Self {
        self.meanings = meanings;
        self
    }

    /// Whether a world of this kind may have it.
    pub fn is_of(&self, kind: KindWord) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    const fn of(mut self, kinds: &'static [KindWord]) -> Self {
        self.kinds = kinds;
        self
    }
}
