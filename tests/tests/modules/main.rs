//! Files of a crate do not use each other in circles: no file uses a definition in a file that, directly or through
//! others, uses a definition in the first. So each file can be read, tested and replaced with only those below it in mind.
//!
//! What counts:
//!
//! - A file *uses* another one if it names a definition in it, in a `use` or by a path (`crate::a::b`, `super::c`,
//!   `d::e`). Where the name comes from does not matter: a name that a parent only re-exports (`pub use child::X`) is
//!   followed to the file that defines it. A re-export is not a use, nor is `mod child;`.
//! - Parents and children are files like any others. A parent and a child that takes a type from the parent are a circle
//!   if the parent calls the child; the type belongs in a separate file, below both.
//! - Libraries and programs of the workspace count, and in them everything except `#[cfg(test)]` items.
//!
//! The check does not see methods, because only the compiler knows whose they are, and macros that a child calls
//! without importing them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use circles::Circle;
use names::{Use, Uses};
use source::Source;

mod circles;
mod names;
mod source;

/// A circle that exists for a reason, or still exists.
struct Known {
    package: &'static str,
    /// One of its files, which distinguishes it from the package's other circles.
    file: &'static str,
    /// The maximum number of its files.
    files: usize,
    reason: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        package: "muster-bus",
        file: "message.rs",
        files: 3,
        reason: "a request answers within the process or over NATS: an enum over both, and both know the message",
    },
    Known {
        package: "muster-bus",
        file: "work.rs",
        files: 3,
        reason: "an item of work comes from either bus: an enum over both, and both make the item",
    },
];

#[test]
fn no_files_go_round_in_a_circle() {
    let mut report = String::new();
    let mut found = BTreeSet::new();
    for (package, root) in targets() {
        let source = source::read(&root, &|path| fs::read_to_string(path).ok());
        let uses = names::uses_in(&source);
        for path in &uses.unknown {
            report += &format!("{package}: a path that leads nowhere, or that this test does not understand: {path}\n");
        }
        for circle in circles::circles_of(&uses) {
            match KNOWN.iter().position(|known| known.package == package && has(&circle, &source, known.file)) {
                Some(known) if circle.len() <= KNOWN[known].files => drop(found.insert(known)),
                _ => {
                    let files = circle.len();
                    report +=
                        &format!("{package}: {files} files in a circle\n{}", circles::shown(&circle, &source, &uses));
                }
            }
        }
    }
    for (_, known) in KNOWN.iter().enumerate().filter(|(place, _)| !found.contains(place)) {
        report +=
            &format!("{}: the circle of {} ({}) is known here but gone\n", known.package, known.file, known.reason);
    }
    assert!(report.is_empty(), "move what makes a circle into a file below both:\n{report}");
}

fn has(circle: &Circle, source: &Source, file: &str) -> bool {
    circle.iter().any(|one| source.files[*one] == file)
}

/// The root files of the libraries and programs of the workspace, with the names of their packages.
fn targets() -> Vec<(String, PathBuf)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let listed = |value: &Value| value.as_array().expect("cargo writes lists").clone();
    let mut targets = Vec::new();
    for package in listed(&metadata["packages"]) {
        let of_package = listed(&package["targets"]).into_iter();
        let programs = of_package.filter(|target| target["kind"][0] == "lib" || target["kind"][0] == "bin");
        targets.extend(programs.map(|target| (text(&package["name"]), PathBuf::from(text(&target["src_path"])))));
    }
    targets
}

fn text(value: &Value) -> String {
    value.as_str().expect("cargo writes texts").to_owned()
}

/// The circles of a made-up crate, as they are shown, and its paths that cannot be resolved.
fn circles_in(files: &[(&str, &str)]) -> (Vec<String>, Uses) {
    let text_of =
        |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned());
    let source = source::read(Path::new("lib.rs"), &text_of);
    let uses = names::uses_in(&source);
    let shown = circles::circles_of(&uses).iter().map(|circle| circles::shown(circle, &source, &uses)).collect();
    (shown, uses)
}

#[test]
fn files_that_use_each_other_are_a_circle() {
    let (circles, _) = circles_in(&[
        ("lib.rs", "pub mod a; pub mod b; pub mod c;"),
        ("a.rs", "use crate::b::{First, Second}; pub struct Mine(First, Second);"),
        ("b.rs", "pub struct First; pub struct Second; fn f() { let _ = vec![crate::a::Mine::new()]; }"),
        ("c.rs", "use crate::a::Mine; pub fn f(_: Mine) {}"),
    ]);
    assert_eq!(circles, ["    a.rs -> b.rs: First, Second\n    b.rs -> a.rs: Mine\n"]);
}

#[test]
fn a_circle_may_go_by_way_of_others_and_of_names_that_are_passed_on() {
    let (circles, _) = circles_in(&[
        ("lib.rs", "mod a; mod b; mod c; pub use self::c::{Third as Renamed}; pub use a::*;"),
        ("a.rs", "pub struct First; fn f() { use crate::b; b::second(); }"),
        ("b.rs", "pub fn second() -> super::Renamed { super::Renamed }"),
        ("c.rs", "use crate::*; pub struct Third; pub fn f(_: First) {}"),
    ]);
    assert_eq!(circles, ["    a.rs -> b.rs: second\n    b.rs -> c.rs: Third\n    c.rs -> a.rs: First\n"]);
}

#[test]
fn a_parent_and_its_child_can_be_a_circle() {
    let (circles, _) = circles_in(&[
        ("lib.rs", "mod parent;"),
        ("parent.rs", "mod child; pub use child::Out; pub struct Size; fn f() -> Out { Out }"),
        ("parent/child.rs", "use super::Size; pub struct Out; fn f(_: Size) {}"),
    ]);
    assert_eq!(circles, ["    parent.rs -> parent/child.rs: Out\n    parent/child.rs -> parent.rs: Size\n"]);
}

#[test]
fn passing_on_imports_of_others_tests_and_methods_make_no_circle() {
    let (circles, uses) = circles_in(&[
        ("lib.rs", "mod parent; mod deep;"),
        (
            "parent.rs",
            "mod child; mod size; pub(crate) use child::out; use size::Size; pub struct Own(Size);
             impl Own { fn out(&self) { let out = self.out(); self.child_says(); } }
             #[cfg(test)] mod tests { use super::child::out; }",
        ),
        (
            "parent/child.rs",
            "use super::{Own, Size}; pub fn out(_: Size) {} impl Own { pub(super) fn child_says(&self) {} }",
        ),
        ("parent/size.rs", "use std::fmt::*; pub struct Size;"),
        ("deep/mod.rs", "pub mod one { use crate::parent::out; pub struct One; } use self::one::One;"),
    ]);
    assert!(circles.is_empty(), "{circles:?}");
    assert!(uses.unknown.is_empty(), "{:?}", uses.unknown);
}

#[test]
fn what_macros_make_is_found_and_what_nobody_makes_is_said() {
    let (circles, uses) = circles_in(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "macro_rules! table { ($name:ident) => { pub struct $name; } } table!(Made); use crate::b::B;"),
        ("b.rs", "use crate::a::Made; pub struct B(Made); use crate::a::Missing; fn f() { crate::say!() }"),
        ("c.rs", "#[macro_export] macro_rules! say { () => {} }"),
    ]);
    assert_eq!(circles, ["    a.rs -> b.rs: B\n    b.rs -> a.rs: Made\n"]);
    assert_eq!(uses.unknown.iter().collect::<Vec<_>>(), ["b.rs: crate::a::Missing"]);
    assert!(uses.uses.contains(&Use { from: 2, to: 3, item: "say".into() }));
}
