//! What the library is built of, for its own tests and benchmarks. Hidden, and free to change in any version.
//!
//! They stand outside the crate because they run in release mode, on thousands of programs and millions of draws: the
//! linear program is judged by another solver, the samplers by exact laws, the widths by enumeration. A user of the
//! library meets the results of all this as [`Plan`](crate::Plan) and [`Engine`](crate::Engine).

/// How rho and delta are split.
pub mod budget {
    pub use crate::budget::Share;
}

/// The linear program.
pub mod lp {
    pub use crate::lp::{Solution, solve};
}

/// Widths and cells.
pub mod width {
    pub use crate::width::{Width, paper, tight};
}

/// Laws drawn from a stream, and the counts of a whole stretch.
#[cfg(feature = "lab")]
pub mod sample {
    pub use crate::lab::epochs::draw_counts;
    pub use crate::lab::sample::*;
}
