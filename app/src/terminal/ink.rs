//! Emphasis, where a terminal shows it.

use std::io::IsTerminal as _;

use debora::measure::answer::Tone;

/// Emphasis for terminals; nothing elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Ink {
    on: bool,
}

/// Emphasis if standard output is a terminal; plain text elsewhere, and where NO_COLOR is set.
pub fn ink_for_stdout() -> Ink {
    // An empty NO_COLOR counts as unset, as no-color.org has it.
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stdout().is_terminal() {
        Ink::terminal()
    } else {
        Ink::none()
    }
}

impl Ink {
    /// With a terminal's escape sequences.
    pub fn terminal() -> Self {
        Self { on: true }
    }

    /// Without any colour, for files and pipes.
    pub fn none() -> Self {
        Self { on: false }
    }

    /// What matters less.
    pub fn faint(&self, text: &str) -> String {
        self.toned(Tone::Faint, text)
    }

    /// The text in its tone.
    pub fn toned(&self, tone: Tone, text: &str) -> String {
        // Bold, red and dim alone: a palette's other colours may be unreadable on somebody's background.
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Alarm => "1;31",
            Tone::Faint => "2",
        };
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
