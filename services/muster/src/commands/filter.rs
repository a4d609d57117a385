//! `muster filter`: which filters there are, and trying one out (HPC-F-69).

mod trial;

use crate::{
    cli::{ConnectionOptions, FilterCommand, QueryOptions},
    exit::{CommandResult, Failure},
    show,
    table::{Table, left},
    terminal,
};
use muster_client::Client;
use muster_schemas::filter::{FilterForm, FilterKind, FilterSettings, FilterSpec, TemplateSpec};
use serde::Serialize;

/// Does what is asked about filters.
pub fn run(connection: &ConnectionOptions, command: FilterCommand) -> CommandResult {
    match command {
        FilterCommand::List(options) => list(connection, &options),
        FilterCommand::Test(options) => trial::test(connection, &options),
    }
}

/// A filter with where it is defined.
#[derive(Clone, Debug, Serialize)]
struct Defined {
    /// What it judges.
    kind: FilterKind,
    /// The template that has it; `None` for a cluster-wide filter.
    template: Option<String>,
    /// A call of it may take so long.
    time_limit_seconds: u32,
    /// All of it.
    #[serde(flatten)]
    filter: FilterSpec,
}

/// All filters, those that are called first in a chain before the others.
fn defined(settings: &FilterSettings, templates: &[TemplateSpec]) -> Vec<Defined> {
    let mut all = Vec::new();
    for kind in [FilterKind::Submission, FilterKind::Activation] {
        let time_limit_seconds = settings.timeout_seconds(kind);
        let one = |template: Option<&str>, filter: &FilterSpec| Defined {
            kind,
            template: template.map(str::to_owned),
            time_limit_seconds,
            filter: filter.clone(),
        };
        for template in templates {
            all.extend(template.filters(kind).iter().map(|filter| one(Some(&template.name), filter)));
        }
        all.extend(settings.cluster_wide(kind).map(|filter| one(None, filter)));
    }
    all
}

fn read(client: &mut Client, options: &QueryOptions) -> Result<Vec<Defined>, Failure> {
    let settings = client.filter_settings(options.moment())?;
    let templates = client.templates(options.moment())?.templates;
    Ok(defined(&settings, &templates))
}

fn list(connection: &ConnectionOptions, options: &QueryOptions) -> CommandResult {
    let filters = read(&mut connection.client()?, options)?;
    if options.json {
        show::print_json(&filters)?;
        return Ok(0);
    }
    let titles = ["FILTER", "KIND", "TEMPLATE", "FORM", "LIMIT", "PROGRAM"];
    let mut table = Table::new(titles.map(left));
    for Defined { kind, template, time_limit_seconds, filter } in filters {
        table.push([
            filter.name.into(),
            kind.word().into(),
            template.unwrap_or_else(|| "-".into()).into(),
            form(filter.form, filter.revert_on_unknown).into(),
            format!("{time_limit_seconds} s").into(),
            filter.path.into(),
        ]);
    }
    terminal::print_table(&table)?;
    Ok(0)
}

fn form(form: FilterForm, revert_on_unknown: bool) -> String {
    let word = match form {
        FilterForm::Exec => "exec",
        FilterForm::Verbs => "verbs",
        FilterForm::Persistent => "persistent",
    };
    if revert_on_unknown { format!("{word}, reverted if unknown") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(name: &str) -> FilterSpec {
        FilterSpec { name: name.into(), path: format!("/f/{name}"), form: FilterForm::Verbs, revert_on_unknown: false }
    }

    #[test]
    fn filters_are_listed_in_the_order_of_their_chains() {
        let settings = FilterSettings {
            submission: Some(filter("last")),
            activation: Some(filter("gate")),
            activation_timeout_seconds: 60,
            ..FilterSettings::default()
        };
        let template = TemplateSpec {
            name: "Big".into(),
            submission_filters: vec![filter("first"), filter("second")],
            ..TemplateSpec::default()
        };
        let all = defined(&settings, &[template]);
        let names: Vec<&str> = all.iter().map(|defined| defined.filter.name.as_str()).collect();
        assert_eq!(names, ["first", "second", "last", "gate"]);
        let limits: Vec<u32> = all.iter().map(|defined| defined.time_limit_seconds).collect();
        assert_eq!(limits, [15, 15, 15, 60]);
    }
}
