//! Tables as HTML: each is described once, and headings, labels and row headers are made of its columns.

use debora::measure::answer::{Align, AnswerColumn, AnswerTable};
use maud::{Markup, Render, html};

use super::{HtmlCell, sentence};

/// A table for a page.
pub struct HtmlTable<'a> {
    table: AnswerTable<HtmlCell>,
    label: &'a str,
    class: &'static str,
    heads: Vec<Head>,
    marks: Vec<RowMark>,
}

/// What a column's heading shows in place of its name.
#[derive(Clone, Default)]
struct Head {
    drawn: Option<Markup>,
    /// What `aria-sort` says.
    sorted: Option<&'static str>,
}

/// What is said of a row as a whole.
#[derive(Clone, Default)]
pub struct RowMark {
    /// By which links and refreshes find it.
    pub id: Option<String>,
    /// Whether what it shows is past.
    pub is_past: bool,
    /// A reason for those who hover.
    pub why: Option<String>,
    /// Whether the reason stands below the row as well, for all to see.
    pub is_told: bool,
}

impl<'a> HtmlTable<'a> {
    /// A table under a label for those who do not see it. On narrow screens its rows become cards.
    pub fn cards(label: &'a str, table: AnswerTable<HtmlCell>) -> Self {
        Self::plain(label, table).class("cards")
    }

    /// A table that scrolls where the page is narrower.
    pub fn plain(label: &'a str, table: AnswerTable<HtmlCell>) -> Self {
        Self {
            heads: vec![Head::default(); table.columns.len()],
            marks: vec![RowMark::default(); table.rows.len()],
            class: "",
            label,
            table,
        }
    }

    /// With these classes in the style sheet. Cells of `cards` have their headings as labels.
    pub fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }

    /// With something drawn in the place of a column's name.
    pub fn head(mut self, place: usize, drawn: Markup) -> Self {
        self.heads[place].drawn = Some(drawn);
        self
    }

    /// With the column that it is sorted by, and in which direction.
    pub fn sorted(mut self, place: usize, direction: Option<&'static str>) -> Self {
        self.heads[place].sorted = direction;
        self
    }

    /// With what is said of each row.
    pub fn marked(mut self, marks: impl IntoIterator<Item = RowMark>) -> Self {
        self.marks = marks.into_iter().collect();
        assert_eq!(self.marks.len(), self.table.rows.len());
        self
    }

    /// As HTML.
    pub fn markup(&self) -> Markup {
        let class = Some(self.class).filter(|class| !class.is_empty());
        let rows = self.table.rows.iter().zip(&self.marks);
        let table = html! {
            table class=[class] {
                thead { tr { @for (column, head) in self.table.columns.iter().zip(&self.heads) { (heading(column, head)) } } }
                tbody { @for (row, mark) in rows { (self.row(row, mark)) } }
            }
        };
        scroll(self.label, &table)
    }

    fn row(&self, row: &[HtmlCell], mark: &RowMark) -> Markup {
        let mut cells = row.iter().zip(&self.table.columns);
        let first = cells.next();
        html! {
            tr class=[mark.is_past.then_some("past")] id=[&mark.id] title=[&mark.why] {
                @if let Some((cell, column)) = first { th scope="row" { (subject(cell, column)) } }
                @for (cell, column) in cells { (self.cell(cell, column)) }
            }
            @if let Some(why) = mark.why.as_ref().filter(|_| mark.is_told) {
                tr { td colspan=(row.len()) { small { (sentence(why)) } } }
            }
        }
    }

    fn cell(&self, cell: &HtmlCell, column: &AnswerColumn) -> Markup {
        // On a phone a row is a card, and the cell stands beside its heading.
        let label = self.class.contains("cards").then_some(&column.name);
        let class = if cell.is_code() {
            Some("hash")
        } else {
            class_of(column)
        };
        html! { td class=[class] data-label=[label] { (cell.markup(column)) } }
    }
}

impl Render for HtmlTable<'_> {
    fn render(&self) -> Markup {
        self.markup()
    }
}

fn heading(column: &AnswerColumn, head: &Head) -> Markup {
    html! {
        th class=[class_of(column)] scope="col" aria-sort=[head.sorted] {
            @if let Some(drawn) = &head.drawn { (drawn) } @else { (column.name) }
        }
    }
}

fn class_of(column: &AnswerColumn) -> Option<&'static str> {
    match column.align {
        Align::Left => None,
        Align::Right => Some("number"),
        Align::Wide => Some("drawn"),
    }
}

/// What a row is about: most often a name, of any script.
fn subject(cell: &HtmlCell, column: &AnswerColumn) -> Markup {
    match cell {
        HtmlCell::Drawn(markup) => markup.clone(),
        cell => html! { bdi { (cell.markup(column)) } },
    }
}

/// A table of values, as an answer has it.
pub fn values_table(table: &AnswerTable) -> Markup {
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let cells = |row: &Vec<_>| row.iter().cloned().map(HtmlCell::Value).collect();
    let table = AnswerTable {
        columns: table.columns.clone(),
        rows: table.rows.iter().map(cells).collect(),
    };
    HtmlTable::plain(&names.join(", "), table).markup()
}

/// Something that scrolls by itself where the page is narrower: by keyboard too, which cannot scroll what it cannot reach.
pub fn scroll(label: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (content) } }
}
