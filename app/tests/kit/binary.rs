//! The program under test.

use std::process::Command;

/// `debora` with these arguments, whatever the environment of the tests says.
pub fn debora(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_debora"));
    command.args(arguments);
    let own = std::env::vars().filter(|(name, _)| name.starts_with("DEBORA_"));
    own.for_each(|(name, _)| {
        command.env_remove(name);
    });
    command
}
