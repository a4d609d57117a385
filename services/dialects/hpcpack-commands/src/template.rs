//! `jobtemplate`: making, showing and changing job templates and their filters (HPC-T-01..11, HPC-F-02, HPC-F-71).

use super::{connection as reach, make::refused};
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure, Status},
    stderr_line,
    table::{Table, left, right},
    terminal,
};
use muster_client::{Client, Moment};
use muster_hpcpack::{
    codes::Code,
    description::attributes::Attribute,
    options::Takes,
    stored_template::{from_stored, to_stored},
    template::{Access, AccessEntry, DEFAULT, FilterDefinition, Limits, Mode, Template, Who, check_filters},
};
use muster_schemas::{CommandId, filter::TemplateSpec};
use std::collections::BTreeMap;

const USAGE: &str = "usage: jobtemplate VERB ...
  list                       every template
  view NAME                  what it sets, who may use it, its filters
  new NAME                   a template without items [/description:TEXT]
  import FILE                make or replace a template from template XML (`-`: standard input) [/name:NAME]
  export NAME [FILE]         its template XML
  delete NAME
  set NAME PROPERTY          an item [/default:V] [/min:N] [/max:N] [/allowed:A,B] [/required:A,B]
  unset NAME PROPERTY        no item
  allow|deny NAME            who may submit with it: /user:NAME, /group:NAME or /everyone [/only: nobody else]
  add-filter NAME FILTER     /kind:submission|activation /path:PROGRAM [/mode:exec|persistent] [/revertonunknown]
                             [/position:N, from 1; else last]
  remove-filter NAME FILTER  /kind:submission|activation";

const KNOWN: [(&str, Takes); 17] = [
    ("scheduler", Takes::Value),
    ("help", Takes::Nothing),
    ("description", Takes::MaybeEmpty),
    ("name", Takes::Value),
    ("default", Takes::MaybeEmpty),
    ("min", Takes::Value),
    ("max", Takes::Value),
    ("allowed", Takes::Value),
    ("required", Takes::Value),
    ("user", Takes::Value),
    ("group", Takes::Value),
    ("everyone", Takes::Nothing),
    ("only", Takes::Nothing),
    ("kind", Takes::Value),
    ("path", Takes::Value),
    ("mode", Takes::Value),
    ("position", Takes::Value),
];
const REVERT: (&str, Takes) = ("revertonunknown", Takes::Truth);

type Options = BTreeMap<&'static str, String>;

/// Runs a command line of `jobtemplate`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> CommandResult {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known: Vec<(&'static str, Takes)> = KNOWN.iter().copied().chain([REVERT]).collect();
    let Some(command) = super::read(&words, &known, USAGE)? else { return Ok(0) };
    let connection = &reach(connection, command.options.get("scheduler").map(String::as_str));
    let Some((verb, arguments)) = command.words.split_first() else { return Err(Failure::usage(USAGE)) };
    let verb = verb.to_lowercase();
    check_options(&verb, &command.options)?;
    let client = &mut connection.client()?;
    match (verb.as_str(), arguments) {
        ("list", []) => list(client),
        ("view", [name]) => view(client, name),
        ("new", [name]) => new(client, name, &command.options),
        ("import", [file]) => import(client, file, command.options.get("name")),
        ("export", [name]) => export(client, name, None),
        ("export", [name, file]) => export(client, name, Some(file)),
        ("delete", [name]) => {
            client.remove_template(CommandId::new_now(), name)?;
            Ok(0)
        }
        ("set", [name, property]) => {
            let property = attribute(property)?;
            change(client, name, |template| set_item(template, property, &command.options))
        }
        ("unset", [name, property]) => {
            let property = attribute(property)?;
            change(client, name, |template| {
                template.remove(property);
                Ok(())
            })
        }
        ("allow" | "deny", [name]) => {
            change(client, name, |template| set_access(template, verb == "allow", &command.options))
        }
        ("add-filter", [name, filter]) => {
            change(client, name, |template| add_filter(template, filter, &command.options))
        }
        ("remove-filter", [name, filter]) => {
            change(client, name, |template| remove_filter(template, filter, &command.options))
        }
        _ => Err(Failure::usage(USAGE)),
    }
}

/// Refuses options that the verb does not have: it never ignores one (HPC-C-01).
fn check_options(verb: &str, given: &Options) -> Result<(), Failure> {
    let allowed: &[&str] = match verb {
        "new" => &["description"],
        "import" => &["name"],
        "set" => &["default", "min", "max", "allowed", "required"],
        "allow" | "deny" => &["user", "group", "everyone", "only"],
        "add-filter" => &["kind", "path", "mode", "position", "revertonunknown"],
        "remove-filter" => &["kind"],
        _ => &[],
    };
    match given.keys().find(|name| **name != "scheduler" && !allowed.contains(name)) {
        Some(name) => Err(Failure::usage(format!("jobtemplate {verb} has no option /{name}\n{USAGE}"))),
        None => Ok(()),
    }
}

fn stored(client: &mut Client) -> Result<Vec<TemplateSpec>, Failure> {
    Ok(client.templates(Moment::Now)?.templates)
}

/// The current template; `Default` always exists, even if nobody made it (HPC-T-01).
fn find(client: &mut Client, name: &str) -> Result<(Template, u64), Failure> {
    let found = stored(client)?.into_iter().find(|template| template.name.to_lowercase() == name.to_lowercase());
    match found {
        Some(found) => Ok((from_stored(&found).map_err(refused)?, found.revision)),
        None if name.eq_ignore_ascii_case(DEFAULT) => Ok((Template::new(DEFAULT), 0)),
        None => {
            let message = Code::TemplateNotFound.message(format_args!("there is no template '{name}'"));
            Err(Failure::new(Status::NotFound, message))
        }
    }
}

fn put(client: &mut Client, template: &Template) -> CommandResult {
    client.set_template(CommandId::new_now(), &to_stored(template))?;
    Ok(0)
}

fn change(client: &mut Client, name: &str, change: impl FnOnce(&mut Template) -> Result<(), Failure>) -> CommandResult {
    let (mut template, _) = find(client, name)?;
    change(&mut template)?;
    put(client, &template)
}

fn list(client: &mut Client) -> CommandResult {
    let mut templates = stored(client)?;
    if !templates.iter().any(|template| template.name.eq_ignore_ascii_case(DEFAULT)) {
        templates.insert(0, TemplateSpec { name: DEFAULT.to_owned(), ..TemplateSpec::default() });
    }
    let mut table = Table::new([
        left("TEMPLATE"),
        right("REVISION"),
        left("SUBMISSION FILTERS"),
        left("ACTIVATION FILTERS"),
        left("DESCRIPTION"),
    ]);
    for stored in &templates {
        let names = |filters: &[muster_schemas::filter::FilterSpec]| {
            filters.iter().map(|filter| filter.name.as_str()).collect::<Vec<_>>().join(",")
        };
        let description = from_stored(stored).map(|template| template.description).unwrap_or_default();
        table.push([
            stored.name.clone().into(),
            stored.revision.to_string().into(),
            names(&stored.submission_filters).into(),
            names(&stored.activation_filters).into(),
            description.into(),
        ]);
    }
    terminal::print_table(&table)?;
    Ok(0)
}

fn view(client: &mut Client, name: &str) -> CommandResult {
    let (template, revision) = find(client, name)?;
    let who: Vec<String> = template.access.0.iter().map(access_text).collect();
    muster_cli::show::print_fields(&[
        ("Template", Some(template.name.clone())),
        ("Revision", Some(revision.to_string())),
        ("Description", Some(template.description.clone()).filter(|text| !text.is_empty())),
        ("Access", Some(if who.is_empty() { "nobody".to_owned() } else { who.join(", ") })),
    ])?;
    let mut items = Table::new([
        left("PROPERTY"),
        left("DEFAULT"),
        left("MINIMUM"),
        left("MAXIMUM"),
        left("ALLOWED"),
        left("REQUIRED"),
    ]);
    for property in template.properties() {
        let limits = template.limits(property).cloned().unwrap_or_default();
        let number = |bound: Option<i64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        items.push([
            property.name().into(),
            template.defaults().get(property).unwrap_or_default().into(),
            number(limits.min).into(),
            number(limits.max).into(),
            limits.allowed.join(",").into(),
            limits.required.join(",").into(),
        ]);
    }
    if !items.is_empty() {
        println!();
        terminal::print_table(&items)?;
    }
    print_filters(&template)?;
    Ok(0)
}

fn print_filters(template: &Template) -> Result<(), Failure> {
    let mut table = Table::new([left("KIND"), right("POSITION"), left("FILTER"), left("MODE"), left("PROGRAM")]);
    for (kind, filters) in [("submission", &template.submission_filters), ("activation", &template.activation_filters)]
    {
        for (position, filter) in (1..).zip(filters) {
            let position: u32 = position;
            table.push([
                kind.into(),
                position.to_string().into(),
                (&filter.name).into(),
                filter.mode.name().to_lowercase().into(),
                (&filter.path).into(),
            ]);
        }
    }
    if !table.is_empty() {
        println!();
        terminal::print_table(&table)?;
    }
    Ok(())
}

fn access_text(entry: &AccessEntry) -> String {
    let may = if entry.is_allowed { "allow" } else { "deny" };
    match &entry.who {
        Who::Everyone => format!("{may} everyone"),
        Who::User(name) => format!("{may} user {name}"),
        Who::Group(name) => format!("{may} group {name}"),
    }
}

fn new(client: &mut Client, name: &str, options: &Options) -> CommandResult {
    if find(client, name).is_ok_and(|(_, revision)| revision > 0) || name.eq_ignore_ascii_case(DEFAULT) {
        return Err(Failure::failed(format!("there is a template '{name}' already")));
    }
    if name.trim().is_empty() {
        return Err(Failure::usage("a template needs a name"));
    }
    let mut template = Template::new(name);
    template.description = options.get("description").cloned().unwrap_or_default();
    put(client, &template)
}

fn import(client: &mut Client, file: &str, name: Option<&String>) -> CommandResult {
    let (mut template, warnings) = Template::read(&super::read_file(file)?).map_err(|error| match error.place {
        Some(place) => {
            let message = format!("[{}] {}", error.code, error.text);
            Failure::at(Status::Failed, format!("{file}:{}:{}", place.line, place.column), message)
        }
        None => Failure::failed(format!("{file}: {error}")),
    })?;
    for warning in warnings {
        stderr_line!("{file}: warning: {warning}");
    }
    if let Some(name) = name {
        template.name.clone_from(name);
    }
    let filters = template.submission_filters.iter().chain(&template.activation_filters);
    filters.for_each(|filter| super::warn_if_missing(&filter.path));
    put(client, &template)
}

fn export(client: &mut Client, name: &str, file: Option<&str>) -> CommandResult {
    let text = find(client, name)?.0.write();
    match file {
        Some(file) => {
            std::fs::write(file, text).map_err(|error| Failure::failed(format!("{file}: {error}")))?;
        }
        None => print!("{text}"),
    }
    Ok(0)
}

fn attribute(name: &str) -> Result<Attribute, Failure> {
    let name = match name.to_lowercase().as_str() {
        "expandedpriority" => "Priority",
        "runtimeseconds" => "RunTime",
        _ => name,
    };
    Attribute::named(name).ok_or_else(|| {
        let known: Vec<&str> = Attribute::ALL.iter().map(|attribute| attribute.name()).collect();
        Failure::usage(format!(
            "`{}` is no property; they are {}",
            muster_cli::table::printable(name),
            known.join(", ")
        ))
    })
}

/// Sets an item and leaves alone what is not given. Bounds of run times are in seconds, those of priorities are values.
fn set_item(template: &mut Template, property: Attribute, options: &Options) -> Result<(), Failure> {
    let number = |name: &str, before: Option<i64>| match options.get(name) {
        None => Ok(before),
        Some(text) => text.parse().map(Some).map_err(|_| Failure::usage(format!("/{name}:{text}: expected a number"))),
    };
    let values = |name: &str, before: Vec<String>| match options.get(name) {
        None => before,
        Some(text) => text.split(',').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect(),
    };
    let before = template.limits(property).cloned().unwrap_or_default();
    let limits = Limits {
        min: number("min", before.min)?,
        max: number("max", before.max)?,
        allowed: values("allowed", before.allowed),
        required: values("required", before.required),
    };
    let default = match options.get("default") {
        Some(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        None => template.defaults().get(property),
    };
    template.set(property, default.as_deref(), limits).map_err(refused)
}

fn set_access(template: &mut Template, is_allowed: bool, options: &Options) -> Result<(), Failure> {
    let who = match (options.get("user"), options.get("group"), options.contains_key("everyone")) {
        (Some(user), None, false) => Who::User(user.clone()),
        (None, Some(group), false) => Who::Group(group.clone()),
        (None, None, true) => Who::Everyone,
        _ => return Err(Failure::usage("who: one of /user:NAME, /group:NAME and /everyone")),
    };
    if options.contains_key("only") {
        template.access = Access(Vec::new());
    }
    template.access.0.retain(|entry| entry.who != who);
    template.access.0.push(AccessEntry { is_allowed, who });
    Ok(())
}

/// The filters of the kind given by `/kind`.
fn filters<'t>(template: &'t mut Template, options: &Options) -> Result<&'t mut Vec<FilterDefinition>, Failure> {
    match options.get("kind").map(|kind| kind.to_lowercase()).as_deref() {
        Some("submission") => Ok(&mut template.submission_filters),
        Some("activation") => Ok(&mut template.activation_filters),
        _ => Err(Failure::usage("which kind: /kind:submission or /kind:activation")),
    }
}

fn add_filter(template: &mut Template, name: &str, options: &Options) -> Result<(), Failure> {
    let path = options.get("path").ok_or_else(|| Failure::usage("which program: /path:PROGRAM"))?;
    let mut filter = FilterDefinition::new(name, path).map_err(refused)?;
    filter.mode = match options.get("mode").map(|mode| mode.to_lowercase()).as_deref() {
        None | Some("exec") => Mode::Exec,
        Some("persistent") => Mode::Persistent,
        Some(other) => return Err(Failure::usage(format!("/mode:{other}: expected exec or persistent"))),
    };
    filter.reverts_on_unknown = options.get("revertonunknown").is_some_and(|value| value != "false" && value != "0");
    let filters = filters(template, options)?;
    let position = match options.get("position") {
        None => filters.len(),
        Some(text) => {
            let position = text.parse::<usize>().ok().filter(|position| (1..=filters.len() + 1).contains(position));
            let expected = || Failure::usage(format!("/position:{text}: expected 1 to {}", filters.len() + 1));
            position.ok_or_else(expected)? - 1
        }
    };
    super::warn_if_missing(&filter.path);
    filters.insert(position, filter);
    check_filters(filters).map_err(refused)
}

fn remove_filter(template: &mut Template, name: &str, options: &Options) -> Result<(), Failure> {
    let filters = filters(template, options)?;
    let before = filters.len();
    filters.retain(|filter| filter.name != name);
    if filters.len() == before {
        return Err(Failure::new(Status::NotFound, format!("the template has no such filter '{name}'")));
    }
    Ok(())
}
