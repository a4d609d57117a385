//! The documentation holds together: links lead somewhere, and the book leads to every page.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

#[test]
fn every_relative_link_leads_to_a_file() {
    let root = root();
    let pages = files_below(&root).into_iter().filter(|path| is_page(path));
    let broken: Vec<String> = pages
        .flat_map(|page| links_of(&page).into_iter().map(move |link| (page.clone(), link)))
        .filter(|(_, link)| !link.exists())
        .map(|(page, link)| format!("{} -> {}", shown(&page), shown(&link)))
        .collect();
    assert!(broken.is_empty(), "links to what does not exist:\n{}", broken.join("\n"));
}

#[test]
fn the_book_leads_to_every_page() {
    let start = root().join("docs/README.md");
    let mut reached = BTreeSet::from([start.clone()]);
    let mut to_read = vec![start];
    while let Some(page) = to_read.pop() {
        let new = links_of(&page).into_iter().filter(|link| reached.insert(link.clone()));
        to_read.extend(new.filter(|link| is_page(link)));
    }
    let missed: Vec<String> = files_below(&root().join("docs"))
        .into_iter()
        .filter(|path| !reached.contains(path))
        .map(|path| shown(&path))
        .collect();
    assert!(missed.is_empty(), "no way leads from docs/README.md to:\n{}", missed.join("\n"));
}

#[test]
fn links_are_found() {
    let text = "[a](one.md) and [b](two/three.md#part), [c](https://example.org), [d](#here)\n\
                ```sh\necho [no](code.md)\n```\n`[no](quoted.md)` ![e](picture.png)\n";
    assert_eq!(targets(text), ["one.md", "two/three.md", "picture.png"]);
}

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// All files below a folder but those of hidden folders and build results.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name();
        let is_left_out = name.to_string_lossy().starts_with('.') || name == "target";
        match entry.file_type().expect("the entry can be looked at") {
            _ if is_left_out => {}
            kind if kind.is_dir() => files.extend(files_below(&entry.path())),
            _ => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

/// The files that a page links to, whether they exist or not.
fn links_of(page: &Path) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(page) else { return Vec::new() };
    let folder = page.parent().unwrap_or(page);
    targets(&text).into_iter().map(|target| normal(&folder.join(target))).collect()
}

/// The relative targets of the links in a text, without the part behind `#`.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Between backquotes is code: every second part.
            targets.extend(line.split('`').step_by(2).flat_map(targets_of_prose));
        }
    }
    targets
}

fn targets_of_prose(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}
