//! The order of the rooms, and what no room may use: read from the sources, every folder of them.
//!
//! ```text
//! library:  core < lab < spec < measure
//! program:  store < log < service < service/http,   log < reading < service/http,   log < audit < service/http and commands,
//!           document < all that it shows,   and of audit, service and reading none knows another
//! ```
//!
//! A room may use those before it in its row, never one after it. What decides must not depend on what measures, what is
//! kept not on what it means, and what audits not on what it audits.

mod source;

use std::path::Path;

use source::{Token, files_below, tokens, uses};

/// The rooms of a crate, by their folders or files below `src`.
struct House {
    /// Rows of rooms, lowest first.
    rows: &'static [&'static [&'static str]],
    /// Pairs of rooms of which neither may use the other.
    strangers: &'static [(&'static str, &'static str)],
    /// The room of everything that is in no other, if that is a room.
    ground: Option<&'static str>,
}

const LIBRARY: House = House {
    rows: &[&["core", "lab", "spec", "measure"]],
    strangers: &[],
    ground: Some("core"),
};

const PROGRAM: House = House {
    rows: &[
        &["store", "log", "service", "service/http"],
        &["log", "reading", "service/http"],
        &["log", "audit", "commands"],
        &["audit", "service/http"],
        // How answers look knows nothing of what they are about.
        &["document", "papers", "service/http"],
        &["document", "report", "commands"],
        &["document", "store"],
        &["document", "log", "reading"],
    ],
    strangers: &[
        ("audit", "service"),
        ("audit", "reading"),
        ("service", "reading"),
    ],
    ground: None,
};

impl House {
    /// The room of a module, given by its path from the crate's root. The innermost counts: http is not the service.
    fn room(&self, module: &[String]) -> Option<&'static str> {
        let path = module.join("/") + "/";
        let rooms = self.rows.iter().copied().flatten().copied();
        rooms
            .filter(|room| path.starts_with(&format!("{room}/")))
            .max_by_key(|room| room.len())
            .or(self.ground)
    }

    fn may_use(&self, user: &str, used: &str) -> bool {
        let rises = |row: &&[&str]| {
            let place = |room: &str| row.iter().position(|other| *other == room);
            matches!((place(user), place(used)), (Some(user), Some(used)) if user < used)
        };
        let strange = |pair: &(&str, &str)| *pair == (user, used) || *pair == (used, user);
        !self.rows.iter().any(rises) && !self.strangers.iter().any(strange)
    }

    /// What is used against the order, as sentences. Files are given by their paths below `src` and their texts.
    fn violations(&self, files: &[(String, String)]) -> Vec<String> {
        let mut found = Vec::new();
        for (path, text) in files {
            let module = module_of(path);
            // The root declares every room and is in none.
            let Some(user) = self.room(&module).filter(|_| !module.is_empty()) else {
                continue;
            };
            for used_module in uses(&module, text) {
                let used = self.room(&used_module);
                if used.is_some_and(|used| !self.may_use(user, used)) {
                    found.push(format!("{path}: {user} uses {}", used_module.join("::")));
                }
            }
        }
        found
    }
}

/// The module of a file, from the crate's root.
fn module_of(path: &str) -> Vec<String> {
    let mut module: Vec<String> = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if ["mod", "lib", "main"].contains(&module[module.len() - 1].as_str()) {
        module.pop();
    }
    module
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_librarys_rooms_keep_their_order() {
    let files = files_below(&workspace().join("src"));
    assert!(files.len() > 50, "only {} files read", files.len());
    assert_eq!(LIBRARY.violations(&files), [""; 0]);
}

#[test]
fn the_programs_rooms_keep_their_order() {
    let files = files_below(&workspace().join("app/src"));
    assert!(files.len() > 50, "only {} files read", files.len());
    assert_eq!(PROGRAM.violations(&files), [""; 0]);
}

/// A room that has been renamed or moved away would be checked no more.
#[test]
fn every_room_is_there() {
    for (house, folder) in [(&LIBRARY, "src"), (&PROGRAM, "app/src")] {
        let files = files_below(&workspace().join(folder));
        for room in house.rows.iter().copied().flatten() {
            let lives = |(path, _): &&(String, String)| house.room(&module_of(path)) == Some(room);
            let count = files.iter().filter(lives).count();
            assert!(count > 1, "{folder}: {count} files in room {room}");
        }
    }
}

/// A file that no `mod` names is compiled into no binary, and its tests never run.
#[test]
fn every_file_of_tests_is_in_a_binary() {
    for folder in ["tests", "app/tests"] {
        let files = files_below(&workspace().join(folder));
        assert!(files.len() > 20, "only {} files read", files.len());
        assert_eq!(strays(&files), [""; 0], "{folder}");
    }
}

#[test]
fn a_stray_file_of_tests_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file(
            "a/main.rs",
            "mod one;\n#[path = \"../kit/mod.rs\"]\nmod kit;\n// mod two;",
        ),
        file("a/one.rs", "pub mod below;"),
        file("a/one/below.rs", ""),
        file("a/two.rs", ""),
        file("b/one.rs", ""),
        file("kit/mod.rs", "mod four { mod five; }"),
        file("kit/four.rs", ""),
    ];
    assert_eq!(strays(&files), ["a/two.rs", "b/one.rs", "kit/four.rs"]);
}

fn strays(files: &[(String, String)]) -> Vec<&str> {
    let paths = files.iter().map(|(path, _)| path.as_str());
    let in_none = |path: &&str| {
        !files
            .iter()
            .any(|(owner, text)| declares(owner, text, path))
    };
    paths
        .filter(|path| !path.ends_with("/main.rs"))
        .filter(in_none)
        .collect()
}

/// Whether a file names another as its module, by its place or by an attribute beside a `main.rs`.
fn declares(owner: &str, text: &str, path: &str) -> bool {
    let below = owner.strip_suffix(".rs").unwrap();
    let below = below.strip_suffix("/main").or(below.strip_suffix("/mod"));
    let below = below.unwrap_or(owner.strip_suffix(".rs").unwrap());
    let module = path.strip_suffix(".rs").unwrap();
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let named = |name: &str| {
        let declaration = ["mod", name].map(|word| Token::Name(word.to_owned()));
        let declaration = [&declaration[..], &[Token::Sign(';')]].concat();
        tokens(text).windows(3).any(|three| three == declaration)
    };
    match module.strip_prefix(below) {
        Some(name) if name.starts_with('/') && !name[1..].contains('/') => named(&name[1..]),
        _ => text.contains(&format!("#[path = \"../{path}\"]")),
    }
}

/// The checker itself, on sources made up for it: each line plants one violation, or shows what is not one.
#[test]
fn a_planted_violation_is_found() {
    let check = |house: &House, path: &str, text: &str| {
        house.violations(&[(path.to_owned(), text.to_owned())])
    };
    for (path, text) in [
        ("plan.rs", "use crate::lab::world::World;"),
        (
            "engine/deep/er.rs",
            "use crate::{Error, lab::{world, part}};",
        ),
        (
            "engine/close.rs",
            "fn f() -> u64 { super::super::spec::parse() }",
        ),
        (
            "lab/players/mod.rs",
            "impl crate::measure::Measured for A {}",
        ),
        ("key.rs", "mod tests { use super::super::lab; }"),
        ("spec/mod.rs", "use super::measure;"),
        (
            "width.rs",
            "fn f<'a>(c: char) { let _ = ('\"', c); crate::lab::f() }",
        ),
    ] {
        let found = check(&LIBRARY, path, text);
        assert!(!found.is_empty(), "{path}: {text}");
    }
    for (path, text) in [
        ("store/sqlite/rows.rs", "use crate::log::Line;"),
        ("log.rs", "use crate::service::Turn;"),
        ("service/turn.rs", "use super::http::routes;"),
        ("audit/replay.rs", "use crate::service::http::pages;"),
        ("service/turn.rs", "use crate::audit;"),
        ("log/page.rs", "use crate::reading::Reading;"),
        ("reading/limits.rs", "use crate::service::limits;"),
        ("reading/alerts.rs", "use crate::service::http::AppState;"),
        ("audit/mod.rs", "use crate::reading::Reading;"),
        ("service/tell.rs", "use crate::reading::share;"),
        ("audit/mod.rs", "use crate::commands::diff;"),
        ("document/table.rs", "use crate::reading::ActionCounts;"),
        ("document/mod.rs", "use crate::papers;"),
    ] {
        let found = check(&PROGRAM, path, text);
        assert!(!found.is_empty(), "{path}: {text}");
    }
    for (path, text) in [
        (
            "lab/part.rs",
            "use crate::{VALUES_VERSION, lab::LabError, plan::Plan};",
        ),
        (
            "plan.rs",
            "//! See `crate::lab`.\n/* crate::lab::x /* */ crate::spec */ fn f() {}",
        ),
        (
            "plan.rs",
            "const A: &str = \"crate::lab::x\"; const B: &str = r#\"\"crate::lab::x\"#;",
        ),
        (
            "plan.rs",
            "fn labels(laboratory: u8) { crate::laboratory() }",
        ),
        ("lib.rs", "pub use crate::lab::LabError;"),
        ("measure/json.rs", "use crate::spec::Spec;"),
    ] {
        assert_eq!(check(&LIBRARY, path, text), [""; 0], "{path}: {text}");
    }
    for (path, text) in [
        (
            "service/http/pages.rs",
            "use super::super::turn::Turn; use crate::{audit, store::Store};",
        ),
        ("audit/replay.rs", "use crate::{log::Line, store::Store};"),
        ("service/http/state.rs", "use crate::reading::Reading;"),
        ("reading/mod.rs", "use crate::{log, store};"),
        (
            "commands/serve.rs",
            "use crate::service::http; use crate::audit;",
        ),
        ("calendar.rs", "use crate::service::x;"),
    ] {
        assert_eq!(check(&PROGRAM, path, text), [""; 0], "{path}: {text}");
    }
}

/// What the standard library leaves to the platform's mathematics: the last bit may differ, and next to a grid edge that bit is
/// an action.
const PLATFORM_MATHEMATICS: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp",
    "exp2", "exp_m1", "gamma", "hypot", "ln", "ln_1p", "ln_gamma", "log", "log10", "log2",
    "mul_add", "powf", "powi", "sin", "sin_cos", "sinh", "tan", "tanh",
];

/// Uses of it, as methods (`x.ln()`) or by their paths (`f64::ln`, called or passed on).
fn platform_mathematics(text: &str) -> Vec<String> {
    // Tests may use it: what they compute is compared with a tolerance.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let tokens = tokens(code);
    let mut found = Vec::new();
    for place in 1..tokens.len() {
        let Token::Name(name) = &tokens[place] else {
            continue;
        };
        if !PLATFORM_MATHEMATICS.contains(&name.as_str()) {
            continue;
        }
        let called = tokens.get(place + 1) == Some(&Token::Sign('('));
        let method = tokens[place - 1] == Token::Sign('.') && called;
        let path = tokens[place - 1] == Token::Path
            && place > 1
            && ["f64", "f32"]
                .map(|kind| Token::Name(kind.into()))
                .contains(&tokens[place - 2]);
        if method || path {
            found.push(name.clone());
        }
    }
    found
}

/// Logarithms and the like must come from libm wherever a value is promised.
#[test]
fn no_value_depends_on_the_platforms_mathematics() {
    for (path, text) in files_below(&workspace().join("src")) {
        assert_eq!(platform_mathematics(&text), [""; 0], "{path}");
    }
}

#[test]
fn planted_mathematics_is_found() {
    for text in [
        "fn f(x: f64) -> f64 { x.log10() }",
        "fn f(x: f64) -> f64 { (x + 1.0).log2() }",
        "fn f(x: f64) -> f64 { f64::ln(x) }",
        "fn f(x: &[f64]) -> f64 { x.iter().copied().map(f64::exp).sum() }",
        "fn f(x: f64) -> f64 { std::primitive::f64::powi(x, 2) }",
        "fn f(x: f64) -> f64 { x\n    .ln()\n}",
    ] {
        assert_eq!(platform_mathematics(text).len(), 1, "{text}");
    }
    for text in [
        "fn f(x: f64) -> f64 { libm::log(x) * libm::exp(x).sqrt() }",
        "// x.ln()\nfn f(s: &S) -> f64 { s.log / 2.0 }",
        "use libm::{exp, log};\nfn f(x: f64) -> f64 { exp(log(x)) }",
        "#[cfg(test)]\nmod tests { fn f(x: f64) -> f64 { x.ln() } }",
    ] {
        assert_eq!(platform_mathematics(text), [""; 0], "{text}");
    }
}
