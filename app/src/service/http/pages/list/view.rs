//! Which experiments the list shows, in which order: as the address says it, and the addresses of other views.

use std::cmp::Ordering;

use serde::Deserialize;

use super::line::ListLine;
use crate::reading::RunState;
use crate::service::http::error::ApiError;

/// What the address asks for. Texts, as a form sends its empty fields, too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct ViewQuery {
    before: String,
    q: String,
    state: String,
    alerts: String,
    sort: String,
}

/// The same, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListView {
    /// Those created before this one; the newest, if it is empty.
    pub before: String,
    /// What a name or an id contains, whatever the case of its letters.
    pub text: String,
    /// In this state alone.
    pub state: Option<RunState>,
    /// With alerts alone.
    pub alerts: bool,
    /// By this column.
    pub column: Column,
    /// In the column's other direction.
    pub reversed: bool,
}

/// What the list can be sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Column {
    Name,
    State,
    Progress,
    Rate,
    Epoch,
    Leader,
    Limits,
    Alerts,
    #[default]
    Age,
}

impl Column {
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::State,
        Self::Progress,
        Self::Rate,
        Self::Epoch,
        Self::Leader,
        Self::Limits,
        Self::Alerts,
        Self::Age,
    ];

    /// Its name in addresses, its heading, and what comes first.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Name => ["name", "Experiment", "A to Z"],
            Self::State => ["state", "State", "waiting first"],
            Self::Progress => ["progress", "Progress", "furthest first"],
            Self::Rate => ["rate", "Rate", "fastest first"],
            Self::Epoch => ["epoch", "Epoch", "latest first"],
            Self::Leader => ["leader", "Leader", "A to Z"],
            Self::Limits => ["limits", "Limits", "exceeded first"],
            Self::Alerts => ["alerts", "Alerts", "most first"],
            Self::Age => ["age", "Age", "newest first"],
        }
    }

    /// How its values run: numbers that are best seen from the top are sorted so at first.
    fn descends(self) -> bool {
        matches!(
            self,
            Self::Progress | Self::Rate | Self::Epoch | Self::Alerts
        )
    }

    /// The order of two lines; those of which nothing is known yet come last, in either direction.
    fn compare(self, one: &ListLine, other: &ListLine, reversed: bool) -> Ordering {
        let known = |line: &ListLine| !matches!(self.rank(line), Rank::Unknown);
        known(other).cmp(&known(one)).then_with(|| {
            let order = self.rank(one).compare(&self.rank(other));
            if reversed { order.reverse() } else { order }
        })
    }

    fn rank(self, line: &ListLine) -> Rank<'_> {
        let number = |number: f64| Rank::Number(if self.descends() { -number } else { number });
        let if_known = |rank: Option<f64>| rank.map_or(Rank::Unknown, number);
        match self {
            Self::Name => Rank::Text(line.title()),
            Self::State => {
                let place = line.run_state().map(|state| f64::from(state as u8));
                if_known(place)
            }
            Self::Progress => number(line.share()),
            Self::Rate => if_known(line.per_second()),
            Self::Epoch => number(line.row.progress.epoch as f64),
            Self::Leader => line
                .leader()
                .map_or(Rank::Unknown, |leader| Rank::Text(&leader.name)),
            Self::Limits => if_known(line.glance().and_then(|glance| {
                let worst = glance.limits.first()?;
                Some(worst.all.verdict.severity() as f64)
            })),
            Self::Alerts => if_known(line.alerts_count().map(|count| count as f64)),
            Self::Age => number(-(line.row.created_at as f64)),
        }
    }
}

/// What a line is sorted by.
enum Rank<'a> {
    Number(f64),
    Text(&'a str),
    Unknown,
}

impl Rank<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Rank::Number(one), Rank::Number(other)) => one.total_cmp(other),
            // Capitals among small letters, where a reader looks for them.
            (Rank::Text(one), Rank::Text(other)) => one.to_lowercase().cmp(&other.to_lowercase()),
            _ => Ordering::Equal,
        }
    }
}

impl ListView {
    /// Of what the address asks for.
    pub fn of(query: ViewQuery) -> Result<Self, ApiError> {
        let (reversed, column) = match query.sort.strip_prefix('-') {
            Some(column) => (true, column),
            None => (false, &*query.sort),
        };
        Ok(Self {
            column: named("sort", column, &Column::ALL, |column| column.words()[0])?
                .unwrap_or_default(),
            state: named("state", &query.state, &RunState::ALL, |state| state.word())?,
            alerts: !query.alerts.is_empty(),
            text: query.q.trim().to_owned(),
            before: query.before,
            reversed,
        })
    }

    /// Its address.
    pub fn address(&self) -> String {
        let sort = self.sort();
        let state = self.state.map_or("", RunState::word);
        let alerts = if self.alerts { "yes" } else { "" };
        let fields = [
            ("q", &*self.text),
            ("state", state),
            ("alerts", alerts),
            ("sort", &*sort),
            ("before", &*self.before),
        ];
        let said: Vec<_> = fields
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let query = serde_urlencoded::to_string(said).expect("texts can be written");
        if query.is_empty() {
            "/".into()
        } else {
            format!("/?{query}")
        }
    }

    /// How it is sorted, as its address says it; nothing of the newest first.
    pub fn sort(&self) -> String {
        match (self.column, self.reversed) {
            (Column::Age, false) => String::new(),
            (column, reversed) => {
                format!("{}{}", if reversed { "-" } else { "" }, column.words()[0])
            }
        }
    }

    /// The same sorted by a column, or by its other direction if it is sorted by it already.
    pub fn sorted_by(&self, column: Column) -> Self {
        Self {
            reversed: self.column == column && !self.reversed,
            column,
            ..self.clone()
        }
    }

    /// The same among experiments created before one.
    pub fn before(&self, id: &str) -> Self {
        Self {
            before: id.to_owned(),
            ..self.clone()
        }
    }

    /// What `aria-sort` says of a column.
    pub fn direction(&self, column: Column) -> Option<&'static str> {
        let words = ["ascending", "descending"];
        (self.column == column).then(|| words[usize::from(column.descends() != self.reversed)])
    }

    /// Whether a text is in a name or an id.
    pub fn finds(&self, id: &str, name: Option<&str>) -> bool {
        let text = self.text.to_lowercase();
        let holds = |words: &str| words.to_lowercase().contains(&text);
        text.is_empty() || holds(id) || name.is_some_and(holds)
    }

    /// Whether a line stays when filtered.
    pub fn keeps(&self, line: &ListLine) -> bool {
        let alerted = line.alerts_count().is_some_and(|count| count > 0);
        let stands = self.state.is_none() || self.state == line.run_state();
        stands && (alerted || !self.alerts)
    }

    /// Puts lines in its order. They come with the newest first, and stay so where it does not tell them apart.
    pub fn sort_lines(&self, lines: &mut [ListLine]) {
        lines.sort_by(|one, other| self.column.compare(one, other, self.reversed));
    }
}

/// The value of this name; `None` of an empty one.
fn named<T: Copy>(
    field: &str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<Option<T>, ApiError> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = all.iter().copied().find(|value| name_of(*value) == name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| name_of(*value)).collect();
        let rule = format!("one of {}", names.join(", "));
        ApiError::unfit(format!("{field} {name:?} is not {rule}")).against(rule, name)
    })
}
