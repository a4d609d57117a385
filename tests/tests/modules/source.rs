//! The source of a crate: its files, their modules, and the definitions, imports and code in each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, ItemMacro, ItemMod, ItemUse, UseTree, Visibility};

/// The files of a crate and their modules. The first module is the root.
#[derive(Default)]
pub struct Source {
    pub files: Vec<String>,
    pub modules: Vec<Module>,
    /// The modules with `#[macro_export]` macros, which are found in the root.
    pub exported: BTreeMap<String, usize>,
}

/// A module: a file, or a `mod` with braces inside one. Test-only code is left out.
#[derive(Default)]
pub struct Module {
    /// Its place in the crate's list of files.
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub defined: BTreeSet<String>,
    /// Every word in the macros that the module defines or calls: names that these macros produce are among them.
    pub in_macros: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// One list for each definition, so that no path continues from one into the next.
    pub code: Vec<Vec<Token>>,
}

/// One leaf of a `use`.
pub struct Import {
    pub path: Vec<String>,
    pub name: Imported,
    /// Whether it is visible outside: `pub use`, `pub(crate) use`.
    pub is_passed_on: bool,
}

#[derive(PartialEq)]
pub enum Imported {
    As(String),
    All,
}

/// The parts of a token that matter when searching for paths.
#[derive(PartialEq)]
pub enum Token {
    Word(String),
    Colons,
    Colon,
    Dot,
    Other,
}

/// Reads a crate from its root file. `text_of` returns the text of a file, if it exists.
pub fn read(root: &Path, text_of: &dyn Fn(&Path) -> Option<String>) -> Source {
    let folder = root.parent().unwrap_or(root).to_owned();
    let mut reader = Reader { text_of, folder: folder.clone(), source: Source::default() };
    reader.file(root, &folder, None);
    reader.source
}

struct Reader<'a> {
    text_of: &'a dyn Fn(&Path) -> Option<String>,
    folder: PathBuf,
    source: Source,
}

impl Reader<'_> {
    /// Reads a file, whose submodules are in the folder `below`.
    fn file(&mut self, path: &Path, below: &Path, parent: Option<usize>) -> usize {
        let shown = path.strip_prefix(&self.folder).unwrap_or(path).display().to_string();
        let text = (self.text_of)(path).unwrap_or_else(|| panic!("{shown} cannot be read"));
        let items = syn::parse_file(&text).unwrap_or_else(|error| panic!("{shown} is not Rust: {error}")).items;
        self.source.files.push(shown);
        self.module(items, self.source.files.len() - 1, below, parent)
    }

    fn module(&mut self, items: Vec<Item>, file: usize, below: &Path, parent: Option<usize>) -> usize {
        let id = self.source.modules.len();
        self.source.modules.push(Module { file, parent, ..Module::default() });
        for item in items {
            if !attributes_of(&item).iter().any(is_only_for_tests) {
                self.item(id, item, below);
            }
        }
        id
    }

    fn item(&mut self, module: usize, item: Item, below: &Path) {
        if let Item::Mod(item) = item {
            let name = item.ident.to_string();
            let child = self.child(module, item, &below.join(&name));
            self.source.modules[module].children.insert(name, child);
            return;
        }
        if let Item::Macro(ItemMacro { ident: Some(name), attrs, .. }) = &item
            && attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
        {
            self.source.exported.insert(name.to_string(), module);
        }
        let module = &mut self.source.modules[module];
        match item {
            Item::Use(item) => module.add_imports(&item),
            Item::Macro(item) => module.add_macro(item),
            other => {
                module.defined.extend(name_of(&other));
                module.add_code(other.to_token_stream());
            }
        }
    }

    fn child(&mut self, module: usize, item: ItemMod, below: &Path) -> usize {
        assert!(
            !item.attrs.iter().any(|attribute| attribute.path().is_ident("path")),
            "mod {}: `path` is not read",
            item.ident
        );
        if let Some((_, items)) = item.content {
            return self.module(items, self.source.modules[module].file, below, Some(module));
        }
        let beside = below.with_extension("rs");
        let exists = (self.text_of)(&beside).is_some();
        let path = if exists { beside } else { below.join("mod.rs") };
        self.file(&path, below, Some(module))
    }
}

impl Module {
    fn add_imports(&mut self, item: &ItemUse) {
        let is_passed_on = !matches!(item.vis, Visibility::Inherited);
        self.add_leaves(&item.tree, &mut Vec::new(), is_passed_on);
    }

    fn add_leaves(&mut self, tree: &UseTree, path: &mut Vec<String>, is_passed_on: bool) {
        let before = path.len();
        let name = match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add_leaves(&part.tree, path, is_passed_on);
                None
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.add_leaves(item, path, is_passed_on));
                None
            }
            UseTree::Name(leaf) => {
                path.push(leaf.ident.to_string());
                Some(None)
            }
            UseTree::Rename(leaf) => {
                path.push(leaf.ident.to_string());
                Some(Some(leaf.rename.to_string()))
            }
            UseTree::Glob(_) => {
                self.imports.push(Import { path: path.clone(), name: Imported::All, is_passed_on });
                None
            }
        };
        if let Some(rename) = name {
            // `use x::{self}` imports `x`.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let name = rename.or_else(|| path.last().cloned()).expect("an import has a name");
            self.imports.push(Import { path: path.clone(), name: Imported::As(name), is_passed_on });
        }
        path.truncate(before);
    }

    fn add_macro(&mut self, item: ItemMacro) {
        self.defined.extend(item.ident.as_ref().map(ToString::to_string));
        let before = self.code.len();
        self.add_code(item.to_token_stream());
        let words = self.code[before..].iter().flatten().filter_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            _ => None,
        });
        self.in_macros.extend(words);
    }

    fn add_code(&mut self, stream: TokenStream) {
        let mut tokens = Vec::new();
        self.flatten(stream, &mut tokens);
        self.code.push(tokens);
    }

    /// The tokens without their groups. A `use` inside a function becomes an import of the module.
    fn flatten(&mut self, stream: TokenStream, tokens: &mut Vec<Token>) {
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            let next = match trees.peek() {
                Some(TokenTree::Punct(next)) => Some(next.as_char()),
                _ => None,
            };
            match tree {
                TokenTree::Group(group) => {
                    tokens.push(Token::Other);
                    self.flatten(group.stream(), tokens);
                    tokens.push(Token::Other);
                }
                // `use<'a>` in a type is no import.
                TokenTree::Ident(word) if word == "use" && next != Some('<') => {
                    let rest = trees.by_ref().take_while(|tree| !is_semicolon(tree));
                    let import: TokenStream = [TokenTree::Ident(word)].into_iter().chain(rest).collect();
                    if let Ok(import) = syn::parse2::<ItemUse>(quote::quote!(#import;)) {
                        self.add_imports(&import);
                    }
                }
                TokenTree::Ident(word) => tokens.push(Token::Word(word.to_string())),
                TokenTree::Punct(mark) => {
                    let is_double = mark.spacing() == Spacing::Joint && next == Some(mark.as_char());
                    tokens.push(match mark.as_char() {
                        ':' if is_double => Token::Colons,
                        ':' => Token::Colon,
                        '.' if !is_double => Token::Dot,
                        _ => Token::Other,
                    });
                    if is_double && matches!(mark.as_char(), ':' | '.') {
                        trees.next();
                    }
                }
                TokenTree::Literal(_) => tokens.push(Token::Other),
            }
        }
    }
}

fn is_semicolon(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ';')
}

/// `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
fn is_only_for_tests(attribute: &Attribute) -> bool {
    let condition = attribute.meta.require_list().map(|list| list.tokens.to_string().replace(' ', ""));
    attribute.path().is_ident("cfg")
        && condition.is_ok_and(|condition| condition == "test" || condition.starts_with("all(test"))
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
