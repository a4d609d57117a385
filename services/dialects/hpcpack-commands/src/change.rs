//! `job modify` (HPC-C-01, HPC-H-07, HPC-F-22, HPC-T-10).

use super::make::{Draft, described, refused, remake};
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure},
};
use muster_client::{Client, Moment};
use muster_hpcpack::{
    description::{Format, JobDescription, SystemValues, attributes::Attribute},
    hold,
    jobs::{change_of, describe, pack, validate},
    options::{Edit, JobCommand},
    shown,
    template::{Access, DEFAULT, Template},
};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    command::JobSelection,
    event::JobChange,
    filter::TemplateSpec,
    views::{EntryWord, HoldUntilRequest, JobView, ModifyRequest},
};
use std::sync::Arc;

/// Changes a job: the whole description of one in state Configuring, otherwise only what can still change.
pub(crate) fn modify(connection: &ConnectionOptions, job: JobId, command: &JobCommand) -> CommandResult {
    if let Some(option) = ["progress", "progressmsg"].iter().find(|option| command.other(option).is_some()) {
        return Err(Failure::usage(format!("/{option}: the progress of a job is that of its tasks and is not set")));
    }
    if command.edits.is_empty() && command.other("holduntil").is_none() && command.other("jobfile").is_none() {
        return Err(Failure::usage("nothing to change: name at least one option such as /priority"));
    }
    let mut client = connection.client()?;
    let view = client.job(job, Moment::Now)?.job;
    let is_configuring = view.filtering.as_ref().is_some_and(|filtering| filtering.entry == EntryWord::Configuring);
    match is_configuring {
        true => configure(connection, &mut client, job, command),
        false => change(&mut client, &view, command),
    }
}

fn configure(connection: &ConnectionOptions, client: &mut Client, job: JobId, command: &JobCommand) -> CommandResult {
    let described_anew = command.other("jobfile").map(Draft::read).transpose()?;
    remake(connection, client, job, |draft| {
        if let Some(anew) = &described_anew {
            draft.clone_from(anew);
        }
        draft.edit(command, Timestamp::now())
    })?;
    Ok(0)
}

/// Changes a job that was submitted. Everything is checked before anything is sent.
fn change(client: &mut Client, view: &JobView, command: &JobCommand) -> CommandResult {
    if command.other("jobfile").is_some() {
        return Err(Failure::usage("/jobfile: only a job in state Configuring can get a new description"));
    }
    let now = Timestamp::now();
    let until = command.other("holduntil").map(|text| hold::parse(text, now)).transpose().map_err(refused)?;
    let jobs = JobSelection::Ids(vec![view.id]);
    if !command.edits.is_empty() {
        if view.outcome.is_some() {
            let state = shown::state(view);
            return Err(Failure::failed(format!("job {} is {state}: a job that is over is not changed", view.id)));
        }
        let change = job_change(client, view, &command.edits, now)?;
        if change != JobChange::default() {
            client.modify(CommandId::new_now(), &ModifyRequest { jobs: jobs.clone(), change })?;
        }
    }
    if let Some(until) = until {
        client.hold_until(CommandId::new_now(), &HoldUntilRequest { jobs, until })?;
    }
    Ok(0)
}

/// The change that the edits make. The job must then keep to its template, like a submitted one.
fn job_change(client: &mut Client, view: &JobView, edits: &[Edit], now: Timestamp) -> Result<JobChange, Failure> {
    let mut job = described(view, client.description(view.id)?);
    let templates = client.templates(Moment::Now)?.templates;
    let is_administrator = is_administrator(client)?;
    let named = |name: &str| templates.iter().find(|template| template.name.eq_ignore_ascii_case(name));
    let template = |name: &Option<String>| named(name.as_deref().unwrap_or(DEFAULT));
    let check = |job: &_, template: Option<&TemplateSpec>| {
        let [template, default] =
            [template, named(DEFAULT)].map(|template| template.map(|template| for_changes(template, is_administrator)));
        let template: Vec<_> = template.into_iter().map(Arc::new).collect();
        validate(job, &[], &template, default.as_ref(), now).map_err(Failure::failed)
    };
    let (format, mut description) = read(&job)?;
    description.attributes.hold_until = None;
    job.document = Some(write(format, &description));
    let before = check(&job, template(&job.template))?;
    edits.iter().try_for_each(|edit| edit.apply(&mut description)).map_err(refused)?;
    job.document = Some(write(format, &description));
    let after = check(&job, template(&description.attributes.job_template))?;
    change_of(&before, &after).map_err(refused)
}

/// The job's current description, including changes since it was checked.
fn read(job: &muster_schemas::filter_order::DescribedJob) -> Result<(Format, JobDescription), Failure> {
    let described = describe(job).map_err(refused)?;
    let (description, _) = JobDescription::read_as(described.format, &described.bytes).map_err(refused)?;
    Ok((described.format, description))
}

fn write(format: Format, description: &JobDescription) -> muster_schemas::filter::JobDocument {
    pack(format, description.write_as(format, &SystemValues::default()).as_bytes())
}

/// The template for checking changes: without its list of users, and an administrator may set any priority (HPC-T-10).
fn for_changes(template: &TemplateSpec, is_administrator: bool) -> TemplateSpec {
    let mut changed = template.clone();
    if let Ok((mut read, _)) = Template::read(template.text.as_bytes()) {
        read.access = Access::default();
        if is_administrator {
            read.remove(Attribute::Priority);
        }
        changed.text = read.write();
    }
    changed
}

/// Whether the caller may do everything; the ledger still decides on each command.
fn is_administrator(client: &mut Client) -> Result<bool, Failure> {
    let caller = client.info(Moment::Now)?.caller;
    Ok(caller == "root" || client.config(Moment::Now)?.settings.administrators.contains(&caller))
}
