//! `muster filter list`.

use crate::{
    cli::{ConnectionOptions, FilterCommand, QueryOptions},
    exit::CommandResult,
    filters::{Defined, read},
    programs, show,
    table::{Table, left},
    terminal,
};
use muster_schemas::filter::FilterForm;

/// Runs `muster filter`.
pub fn run(connection: &ConnectionOptions, command: &FilterCommand) -> CommandResult {
    match command {
        FilterCommand::List(options) => list(connection, options),
        FilterCommand::Test(_) => programs::become_services(),
    }
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
