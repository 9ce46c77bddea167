//! Placeholder.

/// maximise objective.x over the simplex subject to rows[i].x <= limits[i].
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// One coefficient per action.
    pub objective: &'a [f64],
    /// The rows, one after another: row i is `rows[i * actions..][..actions]`.
    pub rows: &'a [f64],
    /// One limit per row.
    pub limits: &'a [f64],
}
