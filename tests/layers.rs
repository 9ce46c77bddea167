//! The core never uses the lab: what decides must not depend on what measures.
//!
//! The core is the files of `src`; its folders are the lab, and above it the spec file and the jobs made of one.

use std::path::Path;

#[test]
fn the_core_uses_nothing_above_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut read = 0;
    for entry in std::fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        read += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let above = |line: &&str| {
            ["lab::", "spec::", "job::"]
                .iter()
                .any(|module| line.contains(module))
        };
        let uses: Vec<&str> = text
            .lines()
            .filter(above)
            .filter(|line| !line.trim().starts_with("//"))
            .collect();
        assert!(uses.is_empty(), "{}: {uses:?}", path.display());
    }
    assert!(read > 10, "only {read} files read");
}

/// Logarithms and the like must come from libm wherever a value is promised.
#[test]
fn no_value_depends_on_the_platforms_mathematics() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for name in [
                ".ln()",
                ".exp()",
                ".powf(",
                ".powi(",
                ".ln_1p()",
                ".exp_m1()",
                ".sin()",
                ".cos()",
                ".mul_add(",
            ] {
                assert!(!code.contains(name), "{} uses {name}", path.display());
            }
        }
    }
}
