//! Converts templates to the form that the core stores, and back (HPC-T-02).

use crate::{
    description::DescriptionError,
    template::{Access, AccessEntry, FilterDefinition, Mode, Template, Who},
};
use muster_schemas::filter::{FilterForm, FilterSpec, TemplateSpec};

/// A template in stored form. The core knows its name, its filters and its users, if only names of users give access;
/// its text has everything.
pub fn to_stored(template: &Template) -> TemplateSpec {
    TemplateSpec {
        name: template.name.clone(),
        revision: 0,
        users: users(&template.access),
        submission_filters: template.submission_filters.iter().map(filter).collect(),
        activation_filters: template.activation_filters.iter().map(filter).collect(),
        text: template.write(),
    }
}

/// The users that may submit, if the list only allows users by name. The check of the description covers all other
/// lists.
fn users(access: &Access) -> Vec<String> {
    let name = |entry: &AccessEntry| match &entry.who {
        Who::User(name) if entry.is_allowed => Some(name.clone()),
        _ => None,
    };
    access.0.iter().map(name).collect::<Option<_>>().unwrap_or_default()
}

fn filter(definition: &FilterDefinition) -> FilterSpec {
    FilterSpec {
        name: definition.name.clone(),
        path: definition.path.clone(),
        form: match definition.mode {
            Mode::Exec => FilterForm::Verbs,
            Mode::Persistent => FilterForm::Persistent,
        },
        revert_on_unknown: definition.reverts_on_unknown,
    }
}

/// Reads a stored template. One made without a text has only what the core knows.
///
/// # Errors
/// A text that cannot be read.
pub fn from_stored(stored: &TemplateSpec) -> Result<Template, DescriptionError> {
    if !stored.text.trim().is_empty() {
        let (mut template, _) = Template::read(stored.text.as_bytes())?;
        template.name.clone_from(&stored.name);
        return Ok(template);
    }
    let mut template = Template::new(stored.name.clone());
    if !stored.users.is_empty() {
        let user = |name: &String| AccessEntry { is_allowed: true, who: Who::User(name.clone()) };
        template.access = Access(stored.users.iter().map(user).collect());
    }
    template.submission_filters = stored.submission_filters.iter().map(definition).collect();
    template.activation_filters = stored.activation_filters.iter().map(definition).collect();
    Ok(template)
}

fn definition(filter: &FilterSpec) -> FilterDefinition {
    FilterDefinition {
        name: filter.name.clone(),
        path: filter.path.clone(),
        mode: match filter.form {
            FilterForm::Persistent => Mode::Persistent,
            FilterForm::Exec | FilterForm::Verbs => Mode::Exec,
        },
        reverts_on_unknown: filter.revert_on_unknown,
    }
}
