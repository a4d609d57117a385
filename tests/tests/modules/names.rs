//! Finds the file that defines the name in a path.

use std::collections::BTreeSet;

use crate::source::{Imported, Module, Source, Token};

/// The first module of a crate.
const ROOT: usize = 0;

/// The target of a path.
pub enum Found {
    Module(usize),
    /// A definition, and the module that contains it.
    Item(usize, String),
    /// Something of another crate.
    Elsewhere,
    Nothing,
}

/// One file's use of a definition in another one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub from: usize,
    pub to: usize,
    pub item: String,
}

/// All uses between the files of a crate, and the paths that cannot be resolved: there should be none.
#[derive(Default)]
pub struct Uses {
    pub uses: BTreeSet<Use>,
    pub unknown: BTreeSet<String>,
}

/// Finds the uses in a crate.
pub fn uses_in(source: &Source) -> Uses {
    let mut uses = Uses::default();
    for (id, module) in source.modules.iter().enumerate() {
        for import in &module.imports {
            // A module that re-exports a name does not use it; a file that imports it from there uses the file
            // that defines it.
            let found = resolve(source, id, &import.path);
            uses.add(source, id, &import.path, found, import.is_passed_on);
        }
        for path in module.code.iter().flat_map(|code| paths_in(code)) {
            if let Some(found) = meaning(source, id, &path) {
                uses.add(source, id, &path, found, false);
            }
        }
    }
    uses
}

impl Uses {
    fn add(&mut self, source: &Source, module: usize, path: &[String], found: Found, is_passed_on: bool) {
        let from = source.modules[module].file;
        match found {
            Found::Item(at, item) if !is_passed_on && source.modules[at].file != from => {
                self.uses.insert(Use { from, to: source.modules[at].file, item });
            }
            Found::Nothing if is_within(&path[0]) => {
                self.unknown.insert(format!("{}: {}", source.files[from], path.join("::")));
            }
            _ => {}
        }
    }
}

/// Whether a path with this first word leads into this crate.
fn is_within(head: &str) -> bool {
    ["crate", "self", "super"].contains(&head)
}

/// The paths in a piece of code that may name something of the crate, including single words. Fields, methods,
/// variables and names being defined do not count.
fn paths_in(code: &[Token]) -> Vec<Vec<String>> {
    let word = |at: usize| match code.get(at) {
        Some(Token::Word(word)) => Some(word.as_str()),
        _ => None,
    };
    let mut paths = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let start = at;
        at += 1;
        let Some(head) = word(start) else { continue };
        let mut path = vec![head.to_owned()];
        while let (Some(Token::Colons), Some(next)) = (code.get(at), word(at + 1)) {
            path.push(next.to_owned());
            at += 2;
        }
        let before = start.checked_sub(1).map(|before| &code[before]);
        let is_part = matches!(before, Some(Token::Dot | Token::Colons));
        let is_new = matches!(before, Some(Token::Word(word)) if ["fn", "let", "mut"].contains(&word.as_str()));
        let is_field = path.len() == 1 && matches!(code.get(at), Some(Token::Colon));
        if !is_part && !is_new && !is_field {
            paths.push(path);
        }
    }
    paths
}

/// The meaning of a path in the code of a module, if it is a use of its own.
fn meaning(source: &Source, module: usize, path: &[String]) -> Option<Found> {
    let head = path[0].as_str();
    match path.len() {
        1 if is_seen_already(&source.modules[module], head) => None,
        1 => match lookup(source, module, path, &mut Vec::new()) {
            Found::Item(at, item) => Some(Found::Item(at, item)),
            _ => None,
        },
        _ => Some(resolve(source, module, path)),
    }
}

/// Whether a word is defined here, or has a `use` that counts anyway.
fn is_seen_already(module: &Module, word: &str) -> bool {
    let is_imported = |passed_on: bool| {
        let named = |name: &Imported| matches!(name, Imported::As(name) if name == word);
        module.imports.iter().any(|import| import.is_passed_on == passed_on && named(&import.name))
    };
    let has_glob = module.imports.iter().any(|import| import.name == Imported::All);
    is_within(word) || module.defined.contains(word) || is_imported(false) || !(is_imported(true) || has_glob)
}

fn resolve(source: &Source, module: usize, path: &[String]) -> Found {
    resolve_unseen(source, module, path, &mut Vec::new())
}

/// The places that a search has visited, so that modules which import each other's names do not make it loop.
type Seen = Vec<(usize, Vec<String>)>;

fn resolve_unseen(source: &Source, module: usize, path: &[String], seen: &mut Seen) -> Found {
    let (mut at, mut rest) = match path[0].as_str() {
        "crate" => (Some(0), &path[1..]),
        "self" => (Some(module), &path[1..]),
        "super" => (Some(module), path),
        // A name that is not in scope belongs to a crate or to the prelude.
        _ => match lookup(source, module, path, seen) {
            Found::Nothing => return Found::Elsewhere,
            found => return found,
        },
    };
    while let (Some(module), Some("super")) = (at, rest.first().map(String::as_str)) {
        at = source.modules[module].parent;
        rest = &rest[1..];
    }
    match at {
        None => Found::Nothing,
        Some(module) if rest.is_empty() => Found::Module(module),
        Some(module) => lookup(source, module, rest, seen),
    }
}

/// The meaning of a path whose first word is a name in a module. Whatever follows an item (variants, functions of a
/// type) belongs to it.
fn lookup(source: &Source, at: usize, path: &[String], seen: &mut Seen) -> Found {
    let place = (at, path.to_vec());
    if seen.contains(&place) {
        return Found::Nothing;
    }
    seen.push(place);
    let module = &source.modules[at];
    let name = &path[0];
    if let Some(child) = module.children.get(name) {
        return continued(source, *child, &path[1..], seen);
    }
    if module.defined.contains(name) {
        return Found::Item(at, name.clone());
    }
    if let Some(exporter) = source.exported.get(name).filter(|_| at == ROOT) {
        return Found::Item(*exporter, name.clone());
    }
    let mut is_perhaps_elsewhere = false;
    // Names that are imported one by one hide those imported with `*`.
    let (globs, named): (Vec<_>, Vec<_>) = module.imports.iter().partition(|import| import.name == Imported::All);
    for import in named.into_iter().filter(|import| matches!(&import.name, Imported::As(found) if found == name)) {
        match resolve_unseen(source, at, &import.path, seen) {
            Found::Nothing => {}
            Found::Module(module) => return continued(source, module, &path[1..], seen),
            found => return found,
        }
    }
    for import in globs {
        match resolve_unseen(source, at, &import.path, seen) {
            Found::Module(module) => match lookup(source, module, path, seen) {
                Found::Nothing => {}
                Found::Elsewhere => is_perhaps_elsewhere = true,
                found => return found,
            },
            // Variants of an enum, or names of another crate: unknown here.
            Found::Item(..) | Found::Elsewhere => is_perhaps_elsewhere = true,
            Found::Nothing => {}
        }
    }
    match () {
        () if module.in_macros.contains(name) => Found::Item(at, name.clone()),
        () if is_perhaps_elsewhere => Found::Elsewhere,
        () => Found::Nothing,
    }
}

fn continued(source: &Source, module: usize, rest: &[String], seen: &mut Seen) -> Found {
    if rest.is_empty() { Found::Module(module) } else { lookup(source, module, rest, seen) }
}
