//! The JSON form of a description: an object with the names of job XML. Terms and variables are objects of texts,
//! `Tasks` is an array of objects, `Dependencies` one of `{"Parent": 1, "Child": 2}`.

use super::{
    DescriptionError, GroupDependency, JobDescription, Place, TaskDescription, Terms, VERSION,
    attributes::{Attribute, TaskAttribute, check_variable},
    document::{Document, EXPANDED_PRIORITY, Given, Givens, Kind, RUNTIME_SECONDS, add, task_attributes},
    parts::SystemValues,
};
use crate::{
    codes::{Code, Warnings},
    xml::{self, not_valid},
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt};

/// The members of an object in order, including duplicates.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that describes a job")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Document, DescriptionError> {
    let text = xml::decode(bytes)?;
    let Members(members) = serde_json::from_str(&text).map_err(|error| {
        let place = Place { line: error.line(), column: error.column() };
        not_valid(format!("not a job description in JSON: {error}"), Some(place))
    })?;
    let (mut document, mut warnings) = (Document::default(), Warnings::default());
    for (name, value) in members {
        match name.as_str() {
            "CustomProperties" => read_terms(&name, value, &mut document.custom_properties)?,
            "ExtendedTerms" => read_terms(&name, value, &mut document.extended_terms)?,
            "Request" => document.request = read_request(value)?,
            "EnvironmentVariables" => read_variables(value, &mut document.environment)?,
            "Dependencies" => document.dependencies = read_dependencies(value, &mut warnings)?,
            "Tasks" => document.tasks = read_tasks(value, &mut warnings)?,
            _ => add_member(&mut document.attributes, &mut warnings, Kind::Job, &name, value)?,
        }
    }
    document.warnings = warnings.finish();
    Ok(document)
}

fn add_member(
    givens: &mut Givens,
    warnings: &mut Warnings,
    kind: Kind,
    name: &str,
    value: Value,
) -> Result<(), DescriptionError> {
    // An unknown member may have any shape.
    let value = if kind.known(name).is_some() { value } else { Value::Bool(true) };
    match scalar(name, value)? {
        Some(text) => add(givens, warnings, kind, name, Given { text, place: None }),
        None => Ok(()),
    }
}

/// The text of a value; `None` for `null`, which is "not specified". Lists are joined by commas.
fn scalar(name: &str, value: Value) -> Result<Option<String>, DescriptionError> {
    let list = match value {
        Value::Null => return Ok(None),
        Value::Array(list) => list,
        value => return plain(name, value).map(Some),
    };
    let items: Vec<String> = list.into_iter().map(|item| plain(name, item)).collect::<Result<_, _>>()?;
    Ok(Some(items.join(",")))
}

fn plain(name: &str, value: Value) -> Result<String, DescriptionError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(expected(name, "a text, a number, true, false or a list of them")),
    }
}

fn expected(name: &str, expected: &str) -> DescriptionError {
    not_valid(format!("`{name}`: expected {expected}"), None)
}

fn object(name: &str, value: Value) -> Result<Map<String, Value>, DescriptionError> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(members) => Ok(members),
        _ => Err(expected(name, "an object")),
    }
}

fn array(name: &str, value: Value) -> Result<Vec<Value>, DescriptionError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items),
        _ => Err(expected(name, "a list")),
    }
}

fn read_terms(name: &str, value: Value, terms: &mut Terms) -> Result<(), DescriptionError> {
    for (term, value) in object(name, value)? {
        terms.set(&term, &plain(&term, value)?)?;
    }
    Ok(())
}

fn read_request(value: Value) -> Result<BTreeMap<String, String>, DescriptionError> {
    // `null` is "not specified".
    let given = object("Request", value)?.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| plain(&name, value).map(|text| (name, text))).collect()
}

fn read_variables(value: Value, variables: &mut BTreeMap<String, String>) -> Result<(), DescriptionError> {
    for (name, value) in object("EnvironmentVariables", value)? {
        let value = plain(&name, value)?;
        check_variable(&name, &value)?;
        variables.insert(name, value);
    }
    Ok(())
}

fn read_dependencies(value: Value, warnings: &mut Warnings) -> Result<Vec<GroupDependency>, DescriptionError> {
    let read = |item: Value| {
        let members = item.as_object().into_iter().flat_map(Map::keys);
        for unknown in members.filter(|name| !["Parent", "Child"].contains(&name.as_str())) {
            let shown = muster_schemas::policy::words::shorten(unknown);
            warnings.push(Code::UnknownJobTerm, format!("unknown member `{shown}` of Dependencies was ignored"));
        }
        let group = |name: &str| item.get(name)?.as_u64()?.try_into().ok();
        let dependency = group("Parent").zip(group("Child"));
        let dependency = dependency.map(|(parent, child)| GroupDependency { parent, child });
        dependency.ok_or_else(|| expected("Dependencies", "objects such as {\"Parent\": 1, \"Child\": 2}"))
    };
    array("Dependencies", value)?.into_iter().map(read).collect()
}

fn read_tasks(value: Value, warnings: &mut Warnings) -> Result<Vec<TaskDescription>, DescriptionError> {
    array("Tasks", value)?.into_iter().map(|task| read_task(object("Tasks", task)?, warnings)).collect()
}

fn read_task(members: Map<String, Value>, warnings: &mut Warnings) -> Result<TaskDescription, DescriptionError> {
    let (mut task, mut givens) = (TaskDescription::default(), Givens::new());
    for (name, value) in members {
        match name.as_str() {
            "CustomProperties" => read_terms(&name, value, &mut task.custom_properties)?,
            "ExtendedTerms" => read_terms(&name, value, &mut task.extended_terms)?,
            "EnvironmentVariables" => read_variables(value, &mut task.environment)?,
            _ => add_member(&mut givens, warnings, Kind::Task, &name, value)?,
        }
    }
    task.attributes = task_attributes(&givens)?;
    Ok(task)
}

pub(super) fn write(description: &JobDescription, system: &SystemValues) -> String {
    let mut object = Map::new();
    object.insert("Version".into(), VERSION.into());
    object.extend(system.iter().map(|(name, value)| (name.to_owned(), value.into())));
    let attributes = &description.attributes;
    let known = Attribute::ALL.iter().filter_map(|name| Some((name.name().to_owned(), attributes.json(*name)?)));
    object.extend(known);
    if let Some(priority) = attributes.priority {
        object.insert(Attribute::Priority.name().into(), priority.band().into());
        object.insert(EXPANDED_PRIORITY.into(), priority.value().into());
    }
    if let Some(seconds) = attributes.run_time.and_then(|run_time| run_time.seconds()) {
        object.insert(RUNTIME_SECONDS.into(), seconds.into());
    }
    let dependencies = description.dependencies.iter();
    let dependencies = dependencies.map(|pair| serde_json::json!({"Parent": pair.parent, "Child": pair.child}));
    if !description.request.is_empty() {
        let request = description.request.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        object.insert("Request".into(), Value::Object(request));
    }
    object.insert("Dependencies".into(), dependencies.collect());
    object.insert("Tasks".into(), description.tasks.iter().map(task_object).collect());
    add_texts(&mut object, &description.custom_properties, &description.extended_terms, &description.environment);
    let mut object = Value::Object(object);
    // Sorted by name, whether or not another crate makes the library keep the order of insertion.
    object.sort_all_objects();
    format!("{object:#}\n")
}

fn task_object(task: &TaskDescription) -> Value {
    let attributes = &task.attributes;
    let known = TaskAttribute::ALL.iter().filter_map(|name| Some((name.name().to_owned(), attributes.json(*name)?)));
    let mut object: Map<String, Value> = known.collect();
    if let Some(seconds) = attributes.run_time.and_then(|run_time| run_time.seconds()) {
        object.insert(RUNTIME_SECONDS.into(), seconds.into());
    }
    add_texts(&mut object, &task.custom_properties, &task.extended_terms, &task.environment);
    Value::Object(object)
}

fn add_texts(
    object: &mut Map<String, Value>,
    custom_properties: &Terms,
    extended_terms: &Terms,
    environment: &BTreeMap<String, String>,
) {
    let terms = |terms: &Terms| terms.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let variables = environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    object.insert("CustomProperties".into(), Value::Object(terms(custom_properties)));
    object.insert("ExtendedTerms".into(), Value::Object(terms(extended_terms)));
    object.insert("EnvironmentVariables".into(), Value::Object(variables));
}
