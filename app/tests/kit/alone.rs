//! Tests of what belongs to a whole process, its memory or its limits, which tests beside them would change.

use std::process::{Command, Stdio};

/// Which test this process was started for.
const ALONE: &str = "DEBORA_TEST_ALONE";

/// Runs a test in a process of its own: what it is there, and a start of that process everywhere else.
///
/// `test` is `module_path!()` and its function; `under` is a command that runs the command behind it.
pub fn alone(test: &str, under: &[&str], claim: impl FnOnce()) {
    if std::env::var(ALONE).is_ok_and(|started| started == test) {
        return claim();
    }
    let program = std::env::current_exe().unwrap();
    let mut words = under.iter().map(|word| word.as_ref());
    let mut words = words.by_ref().chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    // The tests' names begin behind the name of their binary.
    let (_, name) = test.split_once("::").unwrap();
    command.args(words).args([name, "--exact", "--nocapture"]);
    let output = command.env(ALONE, test).stdin(Stdio::null()).output();
    let output = output.expect("this program, again");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let passed = output.status.success() && said.contains("1 passed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(passed, "alone, {name} says: {errors}");
}
