// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules that import each other in a circle.
//!
//! At each level of a crate's module tree, one module uses a sibling if any file
//! below the first names anything below the second; what a parent re-exports
//! belongs to the child that has it. A parent and its children may use each
//! other. Tests do not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Segments from the crate's root.
type ModulePath = Vec<String>;

/// What one crate's files say.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<ModulePath>,
    /// Modules that only tests have, in files of their own.
    of_tests: BTreeSet<ModulePath>,
    /// A path that code of a module names.
    references: Vec<(ModulePath, ModulePath)>,
    /// By module and name: the path that a `use` gives this name to.
    imports: BTreeMap<(ModulePath, String), ModulePath>,
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for name in super::crates() {
        let mut krate = Crate::default();
        krate.read(&super::folder(&name).join("src"), &[]);
        found.extend(krate.circles().into_iter().map(|c| format!("{name}{c}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn circles_are_found() {
    let check = |files: &[(&[&str], &str)], expected: &[&str]| {
        let mut krate = Crate::default();
        for (path, text) in files {
            krate.add(path.iter().map(|s| (*s).to_owned()).collect(), text);
        }
        assert_eq!(krate.circles(), expected);
    };
    let (a, b, c): (&[&str], &[&str], &[&str]) = (&["a"], &["b"], &["b", "c"]);
    check(&[(a, "use crate::b;"), (b, "")], &[]);
    check(&[(a, "use crate::b;"), (b, "use super::a::X;")], &[": a b"]);
    check(
        &[
            (a, "fn f() { crate::b::g() }"),
            (b, ""),
            (c, "use crate::{a::X, z};"),
        ],
        &[": a b"],
    );
    // A parent and its child, and what only tests use.
    check(&[(b, "mod c; use c::X;"), (c, "use super::Y;")], &[]);
    check(
        &[
            (a, "use crate::b;"),
            (b, "#[cfg(test)] mod tests { use crate::a; }"),
        ],
        &[],
    );
    check(
        &[
            (&[], "#[cfg(test)] mod a;"),
            (a, "use crate::b;"),
            (b, "use crate::a;"),
        ],
        &[],
    );
    // By a name that the root hands on.
    check(
        &[
            (&[], "pub use b::X;"),
            (a, "use crate::X;"),
            (b, "use crate::a;"),
        ],
        &[": a b"],
    );
    let nested: (&[&str], &[&str]) = (&["b", "c"], &["b", "d"]);
    check(
        &[
            (b, ""),
            (nested.0, "use super::d::X;"),
            (nested.1, "use super::c;"),
        ],
        &[" b: c d"],
    );
}

impl Crate {
    /// Reads the files of a folder of modules.
    fn read(&mut self, folder: &Path, at: &[String]) {
        for entry in std::fs::read_dir(folder).expect("a folder of modules") {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
            let mut module = at.to_vec();
            if path.is_dir() {
                module.push(stem.to_owned());
                if stem != "tests" {
                    self.read(&path, &module);
                }
                continue;
            }
            let is_code = path.extension().is_some_and(|e| e == "rs");
            if !is_code || matches!(stem, "tests" | "main" | "build") {
                continue;
            }
            if !matches!(stem, "mod" | "lib") {
                module.push(stem.to_owned());
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            self.add(module, &text);
        }
    }

    /// Takes in the text of a module.
    fn add(&mut self, module: ModulePath, text: &str) {
        let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{module:?}: {e}"));
        self.walk(&module, tokens);
        self.modules.insert(module);
    }

    fn walk(&mut self, module: &ModulePath, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            let word = |i: usize| match tokens.get(i) {
                Some(TokenTree::Ident(ident)) => ident.to_string(),
                _ => String::new(),
            };
            match &tokens[i] {
                TokenTree::Punct(p) if p.as_char() == '#' && is_cfg_test(tokens.get(i + 1)) => {
                    if word(i + 2) == "mod" {
                        let mut inner = module.clone();
                        inner.push(word(i + 3));
                        self.of_tests.insert(inner);
                    }
                    i = end_of_item(&tokens, i + 2);
                    continue;
                }
                TokenTree::Group(group) => self.walk(module, group.stream()),
                TokenTree::Ident(_) if word(i) == "use" => {
                    self.path(module, &tokens[i + 1..], true);
                    i = end_of_item(&tokens, i);
                    continue;
                }
                TokenTree::Ident(_) if word(i) == "mod" => {
                    if let Some(TokenTree::Group(body)) = tokens.get(i + 2) {
                        let mut inner = module.clone();
                        inner.push(word(i + 1));
                        self.walk(&inner, body.stream());
                        self.modules.insert(inner);
                        i += 3;
                        continue;
                    }
                }
                TokenTree::Ident(_) if matches!(word(i).as_str(), "crate" | "super" | "self") => {
                    i += self.path(module, &tokens[i..], false).max(1);
                    continue;
                }
                _ => {}
            }
            i += 1;
        }
    }

    /// Takes in a path, or the tree of a `use`; returns its number of tokens.
    fn path(&mut self, module: &ModulePath, tokens: &[TokenTree], is_use: bool) -> usize {
        let mut at = module.clone();
        let mut nr = 0;
        let mut started = false;
        loop {
            match tokens.get(nr) {
                Some(TokenTree::Ident(ident)) => match ident.to_string().as_str() {
                    "crate" if !started => at.clear(),
                    "super" => {
                        at.pop();
                    }
                    "self" => {}
                    name => at.push(name.to_owned()),
                },
                Some(TokenTree::Group(g)) if started && g.delimiter() == Delimiter::Brace => {
                    for tree in split(g.stream()) {
                        self.branch(module, &at, &tree, is_use);
                    }
                    return nr + 1;
                }
                _ => break,
            }
            started = true;
            nr += 1;
            if !is_colons(tokens, nr) {
                break;
            }
            nr += 2;
        }
        self.end(module, at, tokens.get(nr..), is_use);
        nr
    }

    /// A branch of a tree of a `use`.
    fn branch(&mut self, module: &ModulePath, from: &ModulePath, tree: &[TokenTree], is_use: bool) {
        let mut at = from.clone();
        let mut nr = 0;
        while let Some(token) = tree.get(nr) {
            match token {
                TokenTree::Ident(ident) if ident == "self" => {}
                TokenTree::Ident(ident) => at.push(ident.to_string()),
                TokenTree::Group(g) => {
                    for inner in split(g.stream()) {
                        self.branch(module, &at, &inner, is_use);
                    }
                    return;
                }
                _ => break,
            }
            nr += 1;
            if !is_colons(tree, nr) {
                break;
            }
            nr += 2;
        }
        self.end(module, at, tree.get(nr..), is_use);
    }

    fn end(
        &mut self,
        module: &ModulePath,
        path: ModulePath,
        rest: Option<&[TokenTree]>,
        is_use: bool,
    ) {
        if is_use && let Some(last) = path.last() {
            let name = match rest {
                Some([TokenTree::Ident(word), TokenTree::Ident(name), ..]) if word == "as" => {
                    name.to_string()
                }
                _ => last.clone(),
            };
            self.imports.insert((module.clone(), name), path.clone());
        }
        self.references.push((module.clone(), path));
    }

    /// The module that a path leads to.
    fn target(&self, path: &ModulePath) -> ModulePath {
        let mut path = path.clone();
        for _ in 0..8 {
            let known = (0..=path.len())
                .rev()
                .find(|n| self.modules.contains(&path[..*n]));
            let nr = known.unwrap_or(0);
            let Some(name) = path.get(nr) else {
                return path;
            };
            let import = self.imports.get(&(path[..nr].to_vec(), name.clone()));
            match import.filter(|to| **to != path) {
                Some(to) => path = to.iter().chain(&path[nr + 1..]).cloned().collect(),
                None => return path[..nr].to_vec(),
            }
        }
        path
    }

    /// The circles as `: a b` at the root, ` folder: a b` below.
    fn circles(&self) -> Vec<String> {
        let mut uses: BTreeMap<&[String], BTreeSet<(&String, String)>> = BTreeMap::new();
        let in_tests = |m: &ModulePath| (1..=m.len()).any(|n| self.of_tests.contains(&m[..n]));
        for (from, path) in self.references.iter().filter(|(from, _)| !in_tests(from)) {
            let to = self.target(path);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                let level = uses.entry(&from[..common]).or_default();
                level.insert((a, b.clone()));
            }
        }
        let mut found = Vec::new();
        for (level, edges) in uses {
            let mut left: BTreeSet<&String> = edges.iter().map(|(from, _)| *from).collect();
            while let Some(first) = left.pop_first() {
                let reached = reachable(first, &edges);
                let back = |n: &&String| reachable(n, &edges).contains(first);
                let circle: BTreeSet<&String> = reached.iter().filter(back).collect();
                if circle.is_empty() {
                    continue;
                }
                left.retain(|n| !circle.contains(*n));
                let names: Vec<&str> = circle.iter().map(|n| n.as_str()).collect();
                let folder = if level.is_empty() { "" } else { " " };
                found.push(format!("{folder}{}: {}", level.join("/"), names.join(" ")));
            }
        }
        found
    }
}

/// Names that edges lead to from one, itself only by a circle.
fn reachable(from: &String, edges: &BTreeSet<(&String, String)>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut todo = vec![from];
    while let Some(at) = todo.pop() {
        for (_, to) in edges.iter().filter(|(a, _)| *a == at) {
            if reached.insert(to.clone()) {
                todo.push(to);
            }
        }
    }
    reached
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon =
        |t: Option<&TokenTree>| matches!(t, Some(TokenTree::Punct(p)) if p.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}

fn is_cfg_test(token: Option<&TokenTree>) -> bool {
    token.is_some_and(|t| t.to_string().replace(' ', "") == "[cfg(test)]")
}

/// Behind the next body or semicolon.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |t: &TokenTree| match t {
        TokenTree::Punct(p) => p.as_char() == ';',
        TokenTree::Group(g) => g.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let rest = tokens.get(from..).unwrap_or_default();
    rest.iter()
        .position(ends)
        .map_or(tokens.len(), |n| from + n + 1)
}

/// Splits at commas.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
    let parts = tokens.split(is_comma).filter(|p| !p.is_empty());
    parts.map(<[TokenTree]>::to_vec).collect()
}
