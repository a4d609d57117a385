//! Reads job XML.

use super::{
    DescriptionError, GroupDependency, Place, TaskDescription, Terms,
    attributes::check_variable,
    document::{Document, Given, Givens, Kind, add, task_attributes},
};
use crate::{
    codes::{Code, Warnings},
    xml::{self, elements, name, not_valid, text_of},
};
use roxmltree::Node;
use std::{collections::BTreeMap, ops::Range};

pub(super) fn read(bytes: &[u8]) -> Result<Document, DescriptionError> {
    let text = xml::decode(bytes)?;
    let tree = xml::parse(&text)?;
    let mut reader =
        Reader { tree: &tree, warnings: Warnings::default(), last: (0, Place { line: 1, column: 1 }), text: &text };
    let root = tree.root_element();
    if name(root) != "Job" {
        let place = reader.place(root.range());
        return Err(not_valid(format!("expected the element Job, found {}", name(root)), Some(place)));
    }
    let mut document = Document { attributes: reader.attributes(root, Kind::Job)?, ..Document::default() };
    for child in elements(root) {
        match name(child) {
            "CustomProperties" => reader.terms(child, &mut document.custom_properties)?,
            "ExtendedTerms" => reader.terms(child, &mut document.extended_terms)?,
            "Request" => {
                let terms = reader.pairs(child, "Term").into_iter();
                document.request = terms.map(|(name, value, _)| (name, value)).collect();
            }
            "EnvironmentVariables" => reader.environment(child, &mut document.environment)?,
            "Dependencies" => reader.dependencies(child, &mut document.dependencies)?,
            "Tasks" => reader.tasks(child, &mut document.tasks)?,
            _ => reader.unknown(child, "Job"),
        }
    }
    document.warnings = reader.warnings.finish();
    Ok(document)
}

struct Reader<'t, 'i> {
    tree: &'t roxmltree::Document<'i>,
    text: &'t str,
    warnings: Warnings,
    /// The last place asked for, with its byte offset: the search for the next one starts there.
    last: (usize, Place),
}

impl Reader<'_, '_> {
    /// Where a range begins. Places are asked for in text order, so all of them together take one pass over the text.
    fn place(&mut self, range: Range<usize>) -> Place {
        let (from, mut place) = self.last;
        let Some(between) = self.text.get(from..range.start) else { return xml::place(self.text, range.start) };
        let lines = between.matches('\n').count();
        let last_line = between.rsplit('\n').next().unwrap_or_default().chars().count();
        place = match lines {
            0 => Place { column: place.column + last_line, ..place },
            _ => Place { line: place.line + lines, column: last_line + 1 },
        };
        self.last = (range.start, place);
        place
    }

    fn attributes(&mut self, node: Node<'_, '_>, kind: Kind) -> Result<Givens, DescriptionError> {
        let mut givens = Givens::new();
        for attribute in node.attributes() {
            let place = self.place(attribute.range());
            let given = Given { text: attribute.value().to_owned(), place: Some(place) };
            match attribute.namespace() {
                None => add(&mut givens, &mut self.warnings, kind, attribute.name(), given)?,
                Some(_) => self.ignored(format!("attribute `{}` of another namespace", attribute.name())),
            }
        }
        Ok(givens)
    }

    fn ignored(&mut self, what: String) {
        self.warnings.push(Code::UnknownJobTerm, format!("{what} was ignored"));
    }

    fn unknown(&mut self, node: Node<'_, '_>, within: &str) {
        let shown = muster_schemas::policy::words::shorten(name(node));
        self.ignored(format!("unknown element `{shown}` in {within}"));
    }

    /// Warns about attributes of an element other than the known ones.
    fn only(&mut self, node: Node<'_, '_>, known: &[&str]) {
        for attribute in node.attributes() {
            let is_known = known.iter().any(|known| attribute.name().eq_ignore_ascii_case(known));
            if attribute.namespace().is_some() || !is_known {
                let shown = muster_schemas::policy::words::shorten(attribute.name());
                self.ignored(format!("unknown attribute `{shown}` of {}", name(node)));
            }
        }
    }

    /// `Name` and `Value` of each element of this name; incomplete ones are dropped with a warning (HPC-J-43).
    fn pairs(&mut self, node: Node<'_, '_>, each: &str) -> Vec<(String, String, Place)> {
        self.only(node, &[]);
        let mut pairs = Vec::new();
        for child in elements(node) {
            if name(child) != each {
                self.unknown(child, name(node));
                continue;
            }
            self.only(child, &[]);
            for part in elements(child) {
                match name(part) {
                    "Name" | "Value" => self.only(part, &[]),
                    _ => self.unknown(part, each),
                }
            }
            let part = |wanted: &str| elements(child).find(|part| name(*part) == wanted).map(text_of);
            match (part("Name").map(|name| name.trim().to_owned()), part("Value")) {
                (Some(name), Some(value)) if !name.is_empty() => {
                    let place = self.place(child.range());
                    pairs.push((name, value, place));
                }
                (found, _) => {
                    let named = found.filter(|name| !name.is_empty()).map(|name| format!(" `{name}`"));
                    let text = format!("a {each}{} without Name or Value was dropped", named.unwrap_or_default());
                    self.warnings.push(Code::IncompleteTerm, text);
                }
            }
        }
        pairs
    }

    fn terms(&mut self, node: Node<'_, '_>, terms: &mut Terms) -> Result<(), DescriptionError> {
        for (name, value, place) in self.pairs(node, "Term") {
            terms.set(&name, &value).map_err(|refusal| DescriptionError::from(refusal).at(Some(place)))?;
        }
        Ok(())
    }

    fn environment(
        &mut self,
        node: Node<'_, '_>,
        variables: &mut BTreeMap<String, String>,
    ) -> Result<(), DescriptionError> {
        for (name, value, place) in self.pairs(node, "Variable") {
            check_variable(&name, &value).map_err(|refusal| DescriptionError::from(refusal).at(Some(place)))?;
            variables.insert(name, value);
        }
        Ok(())
    }

    fn dependencies(
        &mut self,
        node: Node<'_, '_>,
        dependencies: &mut Vec<GroupDependency>,
    ) -> Result<(), DescriptionError> {
        const GROUP: [&str; 1] = ["GroupId"];
        self.only(node, &[]);
        for parent in elements(node) {
            if name(parent) != "Parent" {
                self.unknown(parent, "Dependencies");
                continue;
            }
            self.only(parent, &GROUP);
            let parent_id = self.group(parent)?;
            for child in elements(parent) {
                if name(child) != "Child" {
                    self.unknown(child, "Parent");
                    continue;
                }
                self.only(child, &GROUP);
                dependencies.push(GroupDependency { parent: parent_id, child: self.group(child)? });
            }
        }
        Ok(())
    }

    fn group(&mut self, node: Node<'_, '_>) -> Result<u32, DescriptionError> {
        let id = node.attributes().find(|attribute| attribute.name().eq_ignore_ascii_case("GroupId"));
        id.and_then(|id| id.value().trim().parse().ok()).ok_or_else(|| {
            let place = self.tree.text_pos_at(node.range().start);
            let place = Place { line: place.row as usize, column: place.col as usize };
            not_valid(format!("{}: expected a GroupId, a whole number from 0", name(node)), Some(place))
        })
    }

    fn tasks(&mut self, node: Node<'_, '_>, tasks: &mut Vec<TaskDescription>) -> Result<(), DescriptionError> {
        self.only(node, &[]);
        for child in elements(node) {
            match name(child) {
                "Task" => tasks.push(self.task(child)?),
                _ => self.unknown(child, "Tasks"),
            }
        }
        Ok(())
    }

    fn task(&mut self, node: Node<'_, '_>) -> Result<TaskDescription, DescriptionError> {
        let attributes = task_attributes(&self.attributes(node, Kind::Task)?)?;
        let mut task = TaskDescription { attributes, ..TaskDescription::default() };
        for child in elements(node) {
            match name(child) {
                "CustomProperties" => self.terms(child, &mut task.custom_properties)?,
                "ExtendedTerms" => self.terms(child, &mut task.extended_terms)?,
                "EnvironmentVariables" => self.environment(child, &mut task.environment)?,
                _ => self.unknown(child, "Task"),
            }
        }
        Ok(task)
    }
}
