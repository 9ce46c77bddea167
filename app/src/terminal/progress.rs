//! How far the work is.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over this many pairs. On anything but a terminal it hides itself.
pub fn progress_bar(total: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let template = "{prefix}{bar:30} {human_pos} of {human_len} pairs, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("a valid template");
    // indicatif draws at most twenty times a second, so each pair may report.
    ProgressBar::new(total).with_style(style)
}
