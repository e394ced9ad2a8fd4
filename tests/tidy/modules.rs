//! The files of a crate and which of them use which, read from their paths: `use` lists and whatever is written out. What a file hands on
//! (`pub use`) counts for the file that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module by its path below the crate.
type Name = Vec<String>;

pub struct Modules {
    uses: BTreeMap<Name, BTreeSet<Name>>,
}

/// The sources below a directory that are no tests, by their path in it.
pub fn sources(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = vec![directory.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in std::fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            let file = path.strip_prefix(directory).expect("below it");
            let file = file.to_string_lossy().into_owned();
            if path.is_dir() {
                // What stands there is a part of a `tests.rs`.
                if !path.ends_with("tests") {
                    rest.push(path);
                }
            } else if file.ends_with(".rs") && !file.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                found.insert(file, text);
            }
        }
    }
    found
}

/// The names and texts of a source, as they are written. Comments are none, and what only tests compile is left out.
pub fn words(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    read_words(source.parse().expect("Rust"), &mut found);
    found
}

fn read_words(stream: TokenStream, into: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_cfg_test(&tokens, at) {
            at = end_of_item(&tokens, at + 2);
            continue;
        }
        match token {
            TokenTree::Group(group) => read_words(group.stream(), into),
            TokenTree::Ident(_) | TokenTree::Literal(_) => into.push(token.to_string()),
            TokenTree::Punct(_) => {}
        }
        at += 1;
    }
}

impl Modules {
    pub fn read(directory: &Path) -> Modules {
        Modules::of(sources(directory).into_iter())
    }

    pub fn of(files: impl Iterator<Item = (String, String)>) -> Modules {
        let files: BTreeMap<Name, Vec<Found>> = files
            .map(|(file, text)| {
                let mut found = Vec::new();
                read(text.parse().expect("Rust"), &mut found);
                (name(&file), found)
            })
            .collect();
        let exists = |name: &[String]| files.contains_key(name);
        let mut handed_on: BTreeMap<(Name, String), Name> = BTreeMap::new();
        for (module, found) in &files {
            for found in found.iter().filter(|found| found.is_public_use) {
                if let (Some((target, _)), Some(last)) =
                    (resolve(module, &found.path, &exists), found.path.last())
                {
                    handed_on.insert((module.clone(), last.clone()), target);
                }
            }
        }
        let uses = files.iter().map(|(module, found)| {
            let targets = found.iter().filter_map(|found| {
                let (target, rest) = resolve(module, &found.path, &exists)?;
                let owner = rest.and_then(|item| handed_on.get(&(target.clone(), item)));
                Some(owner.cloned().unwrap_or(target))
            });
            // Of the root everybody is a part.
            let others = targets.filter(|target| target != module && !target.is_empty());
            (module.clone(), others.collect())
        });
        Modules {
            uses: uses.collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.uses.len()
    }

    /// The same with a folder taken for one file: what its files share is in its `mod.rs`.
    pub fn folders(self) -> Modules {
        let first = |name: &Name| name[..name.len().min(1)].to_vec();
        let mut uses: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
        for (name, others) in &self.uses {
            let folder = uses.entry(first(name)).or_default();
            folder.extend(others.iter().map(first));
        }
        for (name, others) in &mut uses {
            others.remove(name);
        }
        Modules { uses }
    }

    /// The files of each circle, which reach each other.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<&Name, BTreeSet<&Name>> = self
            .uses
            .keys()
            .map(|name| (name, self.reached_from(name)))
            .collect();
        let mut circles = BTreeSet::new();
        for (name, others) in &reached {
            if others.contains(name) {
                let circle = others.iter().filter(|other| reached[*other].contains(name));
                circles.insert(circle.map(|name| name.join("::")).collect());
            }
        }
        circles.into_iter().collect()
    }

    fn reached_from(&self, name: &Name) -> BTreeSet<&Name> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Name> = self.uses[name].iter().collect();
        while let Some(name) = next.pop() {
            if reached.insert(name) {
                next.extend(&self.uses[name]);
            }
        }
        reached
    }
}

/// `pool/mod.rs` is `pool`, `pool/gauge.rs` is `pool::gauge`, `lib.rs` is the root.
fn name(file: &str) -> Name {
    let mut name: Name = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if name
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        name.pop();
    }
    name
}

/// The module that a path leads to, and what it names there.
fn resolve(
    module: &Name,
    path: &[String],
    exists: &impl Fn(&[String]) -> bool,
) -> Option<(Name, Option<String>)> {
    let mut rest = path;
    let mut name = module.clone();
    match path.first()?.as_str() {
        "crate" => {
            name.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                name.pop()?;
                rest = &rest[1..];
            }
        }
        first => {
            let mut child = name.clone();
            child.push(first.to_owned());
            if !exists(&child) {
                return None;
            }
        }
    }
    while let Some(word) = rest.first() {
        name.push(word.clone());
        if !exists(&name) {
            name.pop();
            break;
        }
        rest = &rest[1..];
    }
    Some((name, rest.first().cloned()))
}

struct Found {
    path: Vec<String>,
    is_public_use: bool,
}

/// Collects the paths of a piece of source. What only tests compile is left out.
fn read(stream: TokenStream, into: &mut Vec<Found>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    // `pub`, `pub(crate)`, and then `use`.
    let mut is_public = false;
    while let Some(token) = tokens.get(at) {
        if is_cfg_test(&tokens, at) {
            at += 2;
            at = end_of_item(&tokens, at);
            continue;
        }
        match token {
            TokenTree::Ident(word) if word == "pub" => {
                is_public = true;
                let next = tokens.get(at + 1);
                at += 1
                    + usize::from(
                        matches!(next, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis),
                    );
            }
            TokenTree::Ident(word) if word == "use" => {
                let end = end_of_item(&tokens, at);
                let list = &tokens[at + 1..end];
                expand(Vec::new(), list, is_public, into);
                (at, is_public) = (end, false);
            }
            TokenTree::Ident(_) => {
                is_public = false;
                let (path, end) = path(&tokens, at);
                if path.len() > 1 {
                    let is_public_use = false;
                    into.push(Found {
                        path,
                        is_public_use,
                    });
                }
                at = end;
            }
            TokenTree::Group(group) => {
                is_public = false;
                read(group.stream(), into);
                at += 1;
            }
            _ => {
                is_public = false;
                at += 1;
            }
        }
    }
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == sign)
}

/// `#[cfg(test)]` and its like.
fn is_cfg_test(tokens: &[TokenTree], at: usize) -> bool {
    is_sign(tokens.get(at), '#')
        && matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if {
            let text = group.stream().to_string().replace(' ', "");
            text == "cfg(test)" || text.starts_with("cfg(all(test")
        })
}

/// Behind the `;` or the braces that end what begins at `at`.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let is_use = tokens[at..]
        .iter()
        .find_map(|token| match token {
            TokenTree::Ident(word) => Some(word == "use"),
            _ => None,
        })
        .unwrap_or(false);
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Group(group) => !is_use && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = tokens[at..].iter().position(ends);
    length.map_or(tokens.len(), |length| at + length + 1)
}

/// The words of a path that begins at `at`, and where it ends.
fn path(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        words.push(word.to_string());
        at += 1;
        let goes_on = is_sign(tokens.get(at), ':')
            && is_sign(tokens.get(at + 1), ':')
            && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)));
        if !goes_on {
            break;
        }
        at += 2;
    }
    (words, at)
}

/// The paths of a `use`, with what its braces list.
fn expand(before: Vec<String>, list: &[TokenTree], is_public_use: bool, into: &mut Vec<Found>) {
    for one in list.split(|token| is_sign(Some(token), ',')) {
        let (words, mut at) = path(one, 0);
        let mut whole = before.clone();
        whole.extend(words);
        while is_sign(one.get(at), ':') {
            at += 1;
        }
        match one.get(at) {
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                expand(whole, &inner, is_public_use, into);
            }
            _ if whole.len() > before.len() => {
                if whole.last().is_some_and(|word| word == "self") {
                    whole.pop();
                }
                into.push(Found {
                    path: whole,
                    is_public_use,
                });
            }
            _ => {}
        }
    }
}
