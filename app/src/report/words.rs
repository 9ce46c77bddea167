//! Where the library's words are dressed.

use std::io::IsTerminal as _;

use debora::job::words::Ink;

/// Emphasis on a terminal's standard output; none elsewhere or where NO_COLOR is set.
pub fn ink_for_stdout() -> Ink {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stdout().is_terminal() {
        Ink::terminal()
    } else {
        Ink::none()
    }
}
