//! The table of resources. Every change is checked as a whole before anything is changed.

use super::{
    history::Change,
    property::{self, Fields},
    state::State,
    value::{Kind, Value},
};
use crate::text::{is_name, shown, suggestion};
use std::{collections::BTreeMap, fmt};

/// The greatest number of resources in a table.
pub const MOST_RESOURCES: usize = 1_000_000;
/// The greatest number of properties in a table.
pub const MOST_PROPERTIES: usize = 500;

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    id: u32,
    values: BTreeMap<String, Value>,
}

impl Resource {
    /// Its number.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The value of a property; `None` if it is unset or unknown.
    pub fn value(&self, property: &str) -> Option<&Value> {
        self.values.get(property)
    }

    /// All values that are set, by property.
    pub const fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    /// The value of a property of type text; empty if it is unset.
    pub fn text(&self, property: &str) -> &str {
        match self.values.get(property) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The value of a property of type integer; 0 if it is unset.
    pub fn integer(&self, property: &str) -> i64 {
        match self.values.get(property) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// Its state.
    pub fn state(&self) -> State {
        State::named(self.text(property::STATE)).unwrap_or(State::Suspected)
    }

    /// Its node; empty for a resource without one.
    pub fn node(&self) -> &str {
        self.text(property::NODE)
    }

    /// Whether it belongs to a node that is contacted, or is counted: type `default`.
    pub fn is_default(&self) -> bool {
        self.text(property::TYPE) == property::DEFAULT_TYPE
    }

    /// Until when it can be had.
    pub fn available_upto(&self) -> i64 {
        self.integer(property::AVAILABLE_UPTO)
    }

    /// Whether a property of the kind yes or no says yes.
    pub fn says_yes(&self, property: &str) -> bool {
        self.text(property).eq_ignore_ascii_case("YES")
    }
}

/// Why a change of the table is refused. The table stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

fn problem<T>(message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(message.into()))
}

/// The resources of a site and the types of their properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    fields: Fields,
    resources: BTreeMap<u32, Resource>,
}

impl Default for Table {
    fn default() -> Self {
        Self { fields: property::built_in(), resources: BTreeMap::new() }
    }
}

impl Table {
    /// The properties, each with its type.
    pub const fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The resources in the order of their numbers.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values()
    }

    /// The resource with a number.
    pub fn resource(&self, id: u32) -> Option<&Resource> {
        self.resources.get(&id)
    }

    /// Adds a property, which is unset for all resources (OAR-R-22). Names are kept in small letters.
    ///
    /// # Errors
    /// A name that cannot be one or exists, or too many properties.
    pub fn add_property(&mut self, name: &str, kind: Kind) -> Result<(), Problem> {
        let name = self.new_name(name)?;
        if self.fields.len() >= MOST_PROPERTIES {
            return problem(format!("at most {MOST_PROPERTIES} properties are kept"));
        }
        self.fields.insert(name, kind);
        Ok(())
    }

    /// Renames a property.
    ///
    /// # Errors
    /// A property that does not exist or that every table has, or a new name that cannot be one or exists.
    pub fn rename_property(&mut self, old: &str, new: &str) -> Result<(), Problem> {
        let old = self.own_property(old)?;
        let new = self.new_name(new)?;
        if let Some(kind) = self.fields.remove(&old) {
            self.fields.insert(new.clone(), kind);
        }
        for resource in self.resources.values_mut() {
            if let Some(value) = resource.values.remove(&old) {
                resource.values.insert(new.clone(), value);
            }
        }
        Ok(())
    }

    /// Removes a property with its values. The changes say which values are gone.
    ///
    /// # Errors
    /// A property that does not exist or that every table has.
    pub fn remove_property(&mut self, name: &str) -> Result<Vec<Change>, Problem> {
        let name = self.own_property(name)?;
        self.fields.remove(&name);
        let gone = self.resources.values_mut().filter_map(|resource| {
            let old = resource.values.remove(&name)?;
            Some(Change { resource: resource.id, property: name.clone(), old: Some(old), new: None })
        });
        Ok(gone.collect())
    }

    /// Adds a resource with these values and the next number, or the number that a value gives. Other built-in properties
    /// have their defaults.
    ///
    /// # Errors
    /// An unknown property, a value of another type, a number that is taken, or too many resources.
    pub fn add(&mut self, values: &[(&str, Value)]) -> Result<u32, Problem> {
        if self.resources.len() >= MOST_RESOURCES {
            return problem(format!("at most {MOST_RESOURCES} resources are kept"));
        }
        let mut all: BTreeMap<String, Value> =
            property::defaults().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut wanted = None;
        for (name, value) in values {
            let name = self.known(name)?;
            self.check_value(&name, value)?;
            match value {
                Value::Integer(id) if name == property::ID => wanted = Some(*id),
                value => drop(all.insert(name, value.clone())),
            }
        }
        let id = self.free_id(wanted)?;
        all.insert(property::ID.to_owned(), Value::Integer(i64::from(id)));
        self.resources.insert(id, Resource { id, values: all });
        Ok(id)
    }

    fn free_id(&self, wanted: Option<i64>) -> Result<u32, Problem> {
        let next = self.resources.last_key_value().map_or(0, |(id, _)| i64::from(*id)) + 1;
        let id = wanted.unwrap_or(next);
        match u32::try_from(id) {
            Ok(id) if id > 0 && !self.resources.contains_key(&id) => Ok(id),
            Ok(id) if id > 0 => problem(format!("resource {id} exists")),
            _ => problem(format!("expected a number of a resource from 1 to {}, found {id}", u32::MAX)),
        }
    }

    /// Removes resources.
    ///
    /// # Errors
    /// A number that does not exist, or a resource that is not dead.
    pub fn remove(&mut self, ids: &[u32]) -> Result<(), Problem> {
        for id in ids {
            match self.resources.get(id) {
                None => return problem(format!("resource {id} does not exist")),
                Some(resource) if resource.state() != State::Dead => {
                    return problem(format!("resource {id} is {}; only a Dead one can be removed", resource.state()));
                }
                Some(_) => {}
            }
        }
        self.resources.retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Sets a property of resources, or unsets it. Values that stay are no changes.
    ///
    /// # Errors
    /// An unknown property or resource, a value of another type, or a value that every resource needs.
    pub fn set(&mut self, ids: &[u32], name: &str, value: Option<Value>) -> Result<Vec<Change>, Problem> {
        let name = self.known(name)?;
        match &value {
            _ if name == property::ID => return problem("the number of a resource cannot be changed"),
            Some(value) => self.check_value(&name, value)?,
            None if property::is_built_in(&name) => return problem(format!("{name} cannot be unset")),
            None => {}
        }
        if let Some(id) = ids.iter().find(|id| !self.resources.contains_key(id)) {
            return problem(format!("resource {id} does not exist"));
        }
        Ok(ids.iter().filter_map(|id| self.set_one(*id, &name, value.clone())).collect())
    }

    fn set_one(&mut self, id: u32, name: &str, new: Option<Value>) -> Option<Change> {
        let resource = self.resources.get_mut(&id)?;
        let old = match new.clone() {
            Some(value) => resource.values.insert(name.to_owned(), value),
            None => resource.values.remove(name),
        };
        (old != new).then(|| Change { resource: id, property: name.to_owned(), old, new })
    }

    /// Sets the state of resources.
    ///
    /// # Errors
    /// A resource that does not exist.
    pub fn set_state(&mut self, ids: &[u32], state: State) -> Result<Vec<Change>, Problem> {
        self.set(ids, property::STATE, Some(Value::text(state.word())))
    }

    /// The name of a property as the table has it.
    fn known(&self, name: &str) -> Result<String, Problem> {
        let small = name.to_ascii_lowercase();
        if self.fields.contains_key(&small) {
            return Ok(small);
        }
        let near = suggestion(&small, self.fields.keys().map(String::as_str));
        problem(format!("no property is called '{}'{near}", shown(name)))
    }

    /// The name of a property that the site has added.
    fn own_property(&self, name: &str) -> Result<String, Problem> {
        let name = self.known(name)?;
        if property::is_built_in(&name) {
            return problem(format!("{name} is a property of every resource and stays"));
        }
        Ok(name)
    }

    fn new_name(&self, name: &str) -> Result<String, Problem> {
        let small = name.to_ascii_lowercase();
        if !is_name(&small) || small.contains('-') {
            let form = "a letter or _, then letters, digits and _, at most 64";
            return problem(format!("'{}' cannot be the name of a property: expected {form}", shown(name)));
        }
        if self.fields.contains_key(&small) {
            return problem(format!("the property {small} exists"));
        }
        Ok(small)
    }

    fn check_value(&self, name: &str, value: &Value) -> Result<(), Problem> {
        let Some(kind) = self.fields.get(name) else { return problem(format!("no property is called '{name}'")) };
        let text = value.to_string();
        if *kind != value.kind() || Value::read(*kind, &text).is_none() {
            return problem(format!("{name} is {}; '{}' is not", kind.word(), shown(&text)));
        }
        if name == property::STATE && State::named(&text).is_none() {
            return problem(format!("expected Alive, Absent, Suspected or Dead, found '{}'", shown(&text)));
        }
        Ok(())
    }
}
