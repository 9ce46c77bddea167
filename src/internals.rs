//! What the library is built of, for its own tests and benchmarks. Hidden, and free to change in any version.
//!
//! They stand outside the crate because they run in release mode, on thousands of programs and millions of draws: the
//! linear program is judged by another solver, the widths by enumeration. (The samplers, judged by exact laws, are in
//! `lab::internals`, since nothing here may use the lab.) A user of the library meets the results of all this as [`Plan`](crate::Plan) and [`Engine`](crate::Engine).

/// How rho and delta are split.
pub mod budget {
    pub use crate::budget::Share;
}

/// The linear program.
pub mod lp {
    pub use crate::lp::{Solution, Solver, solve};
}

/// Widths and cells.
pub mod width {
    pub use crate::width::{Width, offset_c, paper, radius, spread, tight};
}
