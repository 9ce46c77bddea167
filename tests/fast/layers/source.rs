//! Rust sources as far as the order of rooms needs them: names, paths and punctuation, without comments and texts.

use std::path::Path;

/// A piece of code.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Name(String),
    /// `::`
    Path,
    Sign(char),
}

/// Every Rust file below a folder, however deep: its path from there, with slashes, and its text.
pub fn files_below(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(folder).unwrap();
                let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
                files.push((names.join("/"), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// The tokens of a text.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest);
        if length > 0 {
            rest = &rest[length..];
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            tokens.push(Token::Name(name.to_owned()));
            rest = &rest[name.len()..];
        } else if rest.starts_with("::") {
            tokens.push(Token::Path);
            rest = &rest[2..];
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

/// The length of the comment, the text or the character that a source begins with; 0 if it begins with none.
fn skipped(source: &str) -> usize {
    if source.starts_with("//") {
        return source.find('\n').unwrap_or(source.len());
    }
    if source.starts_with("/*") {
        return block_comment(source);
    }
    if source.starts_with('"') {
        return quoted(source, '"');
    }
    if let Some(raw) = source.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = &raw[hashes + 1..];
            return body
                .find(&end)
                .map_or(source.len(), |place| hashes + 2 + place + end.len());
        }
    }
    // An apostrophe begins a character, or a lifetime: only the first is closed right after.
    let mut letters = source.chars();
    if letters.next() == Some('\'') {
        let (one, two) = (letters.next(), letters.next());
        if one == Some('\\') || two == Some('\'') {
            return quoted(source, '\'');
        }
    }
    0
}

/// The length of a text in these quotes, escapes included.
fn quoted(source: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, letter) in source.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return place + 1,
            _ => {}
        }
    }
    source.len()
}

/// The length of a comment that may hold others.
fn block_comment(source: &str) -> usize {
    let mut depth = 0;
    let mut place = 0;
    while place < source.len() {
        if source[place..].starts_with("/*") {
            depth += 1;
            place += 2;
        } else if source[place..].starts_with("*/") {
            depth -= 1;
            place += 2;
            if depth == 0 {
                return place;
            }
        } else {
            place += source[place..].chars().next().map_or(1, char::len_utf8);
        }
    }
    source.len()
}

/// What a module uses of its own crate: every path that begins with `crate` or `super`, from the root, groups taken apart.
pub fn uses(module: &[String], text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    // Modules within the file: the depth of braces at which each began.
    let mut inner: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut place = 0;
    while place < tokens.len() {
        match &tokens[place..] {
            [Token::Name(word), Token::Name(_), Token::Sign('{'), ..] if word == "mod" => {
                inner.push(depth);
                depth += 1;
                place += 3;
                continue;
            }
            [Token::Sign('{'), ..] => depth += 1,
            [Token::Sign('}'), ..] => {
                depth = usize::saturating_sub(depth, 1);
                if inner.last() == Some(&depth) {
                    inner.pop();
                }
            }
            [Token::Name(word), Token::Path, ..] if word == "crate" || word == "super" => {
                let mut base = module.to_vec();
                // The names of modules within the file do not matter, only how many there are.
                base.extend(inner.iter().map(|_| "inner".to_owned()));
                place = path(&tokens, place, &base, &mut found);
                continue;
            }
            _ => {}
        }
        place += 1;
    }
    found
}

/// Reads the path or group of paths at a place, seen from `base`; returns the place after it.
fn path(
    tokens: &[Token],
    mut place: usize,
    base: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut at = base.to_vec();
    loop {
        match tokens.get(place) {
            Some(Token::Name(word)) if word == "crate" => at.clear(),
            Some(Token::Name(word)) if word == "super" => {
                at.pop();
            }
            Some(Token::Name(word)) if word == "self" => {}
            Some(Token::Name(word)) => at.push(word.clone()),
            Some(Token::Sign('{')) => return group(tokens, place + 1, &at, found),
            _ => break,
        }
        place += 1;
        if tokens.get(place) != Some(&Token::Path) {
            break;
        }
        place += 1;
    }
    found.push(at);
    place
}

/// Reads the paths between braces, the first of which is behind; returns the place after the second.
fn group(tokens: &[Token], mut place: usize, at: &[String], found: &mut Vec<Vec<String>>) -> usize {
    while place < tokens.len() {
        match &tokens[place] {
            Token::Sign('}') => return place + 1,
            Token::Name(_) => place = path(tokens, place, at, found),
            _ => place += 1,
        }
    }
    place
}
