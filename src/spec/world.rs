//! `[world]`: what a simulation draws its feedback from.
//!
//! Each quantity has one entry per action: a list in the order of `actions`, or a table by their names. Means and values
//! are in the user's units.

use std::sync::Arc;

use crate::WorldKey;
use crate::lab::LabError;
use crate::lab::random::{RandomWorlds, RewardLaw};
use crate::lab::world::{Bernoulli, Beta, Discrete, Law, World};
use crate::problem::{HORIZON_MAX, Problem};
use crate::spec::error::{Fault, Read, SpecPlace};
use crate::spec::field::{Field, SpecSection};
use crate::spec::keys::{LAW, WORLD};
use crate::spec::{cost_names, key};

/// A simulated world, as the spec states it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldSpec {
    /// The law of its feedback.
    pub kind: WorldKind,
    /// Its key, if the spec gives one.
    pub key: Option<WorldKey>,
}

/// The law of a world's feedback, in the user's units.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldKind {
    /// Each quantity is one of its range's two ends.
    Bernoulli {
        /// Per quantity (0 is the reward), per action.
        means: Vec<Vec<f64>>,
    },
    /// Each quantity has a beta law.
    Beta {
        /// Per quantity, per action.
        means: Vec<Vec<f64>>,
        /// How close values stay to their mean.
        concentration: f64,
    },
    /// Each quantity takes finitely many values.
    Discrete {
        /// Per quantity, per action: values and their probabilities.
        laws: Vec<Vec<Law>>,
    },
    /// Recorded rows, drawn with replacement.
    Table {
        /// The name of a CSV file, as the spec writes it.
        file: String,
        /// The names of the columns to read: of the action, the reward and each cost. Without them, the header has those
        /// and no others.
        columns: Option<Vec<String>>,
    },
    /// Means drawn by the world's key.
    Random {
        /// How rewards lie.
        law: RewardLaw,
        /// In the reward's units; 0 of a law without one.
        gap: f64,
        /// How many worlds there are: pair j meets number j mod this, counted from `index`.
        worlds: u64,
        /// The number of the first.
        index: u64,
    },
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum KindWord {
    Bernoulli,
    Beta,
    Discrete,
    Table,
    Random,
}

pub(super) const LAWS: [(&str, RewardLaw); 4] = [
    (RewardLaw::Uniform.name(), RewardLaw::Uniform),
    (RewardLaw::Gap.name(), RewardLaw::Gap),
    (RewardLaw::Stairs.name(), RewardLaw::Stairs),
    (RewardLaw::Sparse.name(), RewardLaw::Sparse),
];

pub(super) const KINDS: [(&str, KindWord); 5] = [
    ("bernoulli", KindWord::Bernoulli),
    ("beta", KindWord::Beta),
    ("discrete", KindWord::Discrete),
    ("table", KindWord::Table),
    ("random", KindWord::Random),
];

/// Reads `[world]`.
pub(super) fn read(field: &Field<'_>, problem: &Problem) -> Read<WorldSpec> {
    let section = field.section(WORLD)?;
    let kind = section.need("kind")?.choice(&KINDS)?;
    // First, as a key of another kind often means that the kind is the mistake.
    check_keys(&section, kind)?;
    Ok(WorldSpec {
        key: section.read("key", |field| key(field, WorldKey::from_hex))?,
        kind: read_kind(&section, kind, problem)?,
    })
}

fn read_kind(section: &SpecSection<'_>, kind: KindWord, problem: &Problem) -> Read<WorldKind> {
    let means = || each_quantity(section, problem, |field| field.number());
    Ok(match kind {
        KindWord::Bernoulli => WorldKind::Bernoulli { means: means()? },
        KindWord::Beta => {
            // There is no default: how far values scatter changes what is found, so the spec has to say it.
            let concentration = section.need("concentration")?;
            WorldKind::Beta {
                means: means()?,
                concentration: concentration.number()?,
            }
        }
        KindWord::Discrete => WorldKind::Discrete {
            laws: each_quantity(section, problem, law)?,
        },
        KindWord::Table => WorldKind::Table {
            // As written: the caller, which opens it, knows what it is relative to.
            file: section.need("file")?.text()?.to_owned(),
            columns: section.read("columns", |field| columns(field, problem))?,
        },
        KindWord::Random => random(section)?,
    })
}

/// `columns = { action = "arm", reward = "clicks" }`: what is not named there has the name it has without.
fn columns(field: &Field<'_>, problem: &Problem) -> Read<Vec<String>> {
    let mut names = vec!["action", "reward"];
    names.extend(cost_names(problem));
    let given = field.by_name("column", &names)?;
    let column = |(given, name): (Option<Field<'_>>, &str)| match given {
        Some(field) => Ok(field.text()?.to_owned()),
        None => Ok(name.to_owned()),
    };
    let columns = given.into_iter().zip(names).map(column);
    let columns: Vec<String> = columns.collect::<Read<_>>()?;
    // A column read twice would tie two quantities together.
    let twice = |(place, name): (usize, &String)| columns[..place].contains(name);
    match columns.iter().enumerate().find(|one| twice(*one)) {
        Some((_, name)) => Err(field.fault(format!(
            "{} names the column {name:?} twice; each quantity needs its own",
            field.path
        ))),
        None => Ok(columns),
    }
}

fn random(section: &SpecSection<'_>) -> Read<WorldKind> {
    let law = section.need("law")?.choice(&LAWS)?;
    let whole = |key: &str, least: u64, rule: &str| {
        let number = section.read(key, |field| match field.whole::<u64>(rule)? {
            // Up to 2^53, as horizons: sums of two of them are far from the end of 64 bits.
            number if (least..=HORIZON_MAX).contains(&number) => Ok(number),
            _ => Err(field.wrong(rule)),
        })?;
        Ok(number.unwrap_or(least))
    };
    Ok(WorldKind::Random {
        law,
        gap: gap(section, law)?,
        worlds: whole("worlds", 1, "it must be a whole number, 1 or more")?,
        index: whole("index", 0, "it must be a whole number, 0 or more")?,
    })
}

fn gap(section: &SpecSection<'_>, law: RewardLaw) -> Read<f64> {
    if law.has_gap() {
        return section.need("gap")?.number();
    }
    match section.get("gap") {
        // As keys of another kind: it would change nothing.
        Some(field) => Err(field.fault(format!(
            "world.gap is not used by law {}, only by gap, stairs, sparse; leave it out",
            law.name()
        ))),
        None => Ok(0.0),
    }
}

/// Refuses keys of another kind: they would change nothing, although their author believes they do.
fn check_keys(section: &SpecSection<'_>, kind: KindWord) -> Read<()> {
    let name = |kind: KindWord| {
        KINDS
            .iter()
            .find(|(_, other)| *other == kind)
            .map_or("", |(name, _)| *name)
    };
    for key in WORLD.iter().filter(|key| !key.is_of(kind)) {
        if let Some(field) = section.get(key.name) {
            let users: Vec<&str> = key.kinds.iter().map(|&kind| name(kind)).collect();
            let message = format!(
                "world.{} is not used by kind {}, only by {}; leave it out",
                key.name,
                name(kind),
                users.join(", ")
            );
            return Err(field.fault(message));
        }
    }
    Ok(())
}

/// `reward` and `cost.NAME` for each cost: one entry per action.
fn each_quantity<T>(
    section: &SpecSection<'_>,
    problem: &Problem,
    read: impl Fn(&Field<'_>) -> Read<T>,
) -> Read<Vec<Vec<T>>> {
    let actions: Vec<&str> = problem.actions().iter().map(String::as_str).collect();
    let costs = cost_names(problem);
    let mut fields = vec![section.need("reward")?];
    match section.get("cost") {
        Some(field) => fields.extend(field.each_by_name("cost", &costs)?),
        None if costs.is_empty() => {}
        None => {
            // With the path that the spec would have, so that it can be copied.
            return Err(section.lacks("cost", &format!("cost.{}", costs[0])));
        }
    }
    fields
        .iter()
        .map(|field| field.each_action(&actions)?.iter().map(&read).collect())
        .collect()
}

/// `{ values = [..], probabilities = [..] }`.
fn law(field: &Field<'_>) -> Read<Law> {
    let law = field.section(LAW)?;
    let values = law.need("values")?.numbers()?;
    let chances = law.need("probabilities")?;
    // Signs and sums are checked when the world is built, by the rules of the lab.
    let probabilities = chances.numbers()?;
    if probabilities.len() != values.len() {
        let message = format!(
            "{} has {} entries for {} values",
            chances.path,
            probabilities.len(),
            values.len()
        );
        return Err(chances.fault(message + "; give one for each, in their order"));
    }
    Ok((values, probabilities))
}

/// A world, or the file its rows stand in.
pub(super) enum Built<'a> {
    World(Arc<dyn World>),
    Rows(&'a str, Option<&'a [String]>),
}

impl WorldKind {
    /// Its word in a spec.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bernoulli { .. } => "bernoulli",
            Self::Beta { .. } => "beta",
            Self::Discrete { .. } => "discrete",
            Self::Table { .. } => "table",
            Self::Random { .. } => "random",
        }
    }

    /// Checks every value. Only random worlds depend on the key before anything is drawn from them.
    pub(super) fn build(&self, problem: &Problem, key: WorldKey) -> Result<Built<'_>, LabError> {
        Ok(match self {
            Self::Bernoulli { means } => Built::World(Arc::new(Bernoulli::new(problem, means)?)),
            Self::Beta {
                means,
                concentration,
            } => Built::World(Arc::new(Beta::new(problem, means, *concentration)?)),
            Self::Discrete { laws } => Built::World(Arc::new(Discrete::new(problem, laws)?)),
            // Its rows are not in the spec, and reading them is left until a world is asked for.
            Self::Table { file, columns } => Built::Rows(file, columns.as_deref()),
            Self::Random {
                law,
                gap,
                worlds,
                index,
            } => {
                let numbers = [*index, *worlds];
                Built::World(Arc::new(RandomWorlds::new(
                    problem, *law, *gap, numbers, key,
                )?))
            }
        })
    }
}

/// No world, but one is asked for.
pub(super) fn missing() -> Fault {
    let message = "there is no [world] to simulate; add one, say kind = \"bernoulli\" with the means of each action";
    Fault::new(SpecPlace::Whole, message)
}
