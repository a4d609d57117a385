//! How filter-runners read and write job descriptions, and how the ledger reads the limits of templates. Both are
//! contracts with a site about jobs of every dialect (HPC-F-02): job XML, job JSON and templates, as in HPC Pack. What
//! a job's own dialect adds is kept separately (SL-S-21).

use bytes::Bytes;
use muster_dialect::Dialects;
use muster_filter_runner::{Answer, Description, Descriptions, FileAfter as Left, Judgement};
use muster_hpcpack::{
    changes::{self, BadOutput},
    description::{Format, SystemValues},
    jobs,
    result_file::{self, ResultFile},
};
use muster_ledger::limits::{self as ledger, TemplateLimits};
use muster_schemas::{
    Timestamp,
    event::{Owner, Validated},
    filter::{FileAfter, FilterAction, FilterExit, FilterHold, FilterKind, JobWarning, PropertyChange, TemplateSpec},
    filter_order::DescribedJob,
};
use std::{collections::BTreeMap, ffi::CString, sync::Arc};

/// The descriptions and templates of a site.
#[derive(Clone, Copy, Debug)]
pub struct SiteDescriptions {
    /// Knows the dialect-specific requests of jobs.
    pub dialects: Dialects,
}

impl Descriptions for SiteDescriptions {
    fn describe(&self, job: &DescribedJob) -> Result<Description, String> {
        let (xml, json) = jobs::described_in_both(job, || self.request(job)).map_err(|error| error.to_string())?;
        Ok(Description { xml: xml.into(), json: json.into() })
    }

    fn staged(&self, job: &DescribedJob) -> Result<Description, String> {
        let offset = job.component.map_or(0, |part| part.offset);
        let part = job.of_component(offset).ok_or_else(|| format!("it has no component {offset}"))?;
        let (_, json) = jobs::described_in_both(&part, || self.request(&part)).map_err(|error| error.to_string())?;
        let dialect = self.dialects.telling(&job.spec);
        let script = dialect.and_then(|dialect| dialect.staged_script(&job.spec, offset));
        let script = script.ok_or("no dialect has a script for it")?;
        Ok(Description { xml: script.into(), json: json.into() })
    }

    fn judge(&self, kind: FilterKind, action: FilterAction, told: &Description, answer: &Answer) -> Judgement {
        let lines = ResultFile::read(&answer.result_lines.bytes);
        let mut judgement = Judgement {
            file: FileAfter::Unchanged,
            message: lines.message,
            hold_until: lines.hold_until.map(hold),
            warnings: lines.warnings.into_iter().map(Into::into).collect(),
        };
        // Only a submission filter that judges can change the job (HPC-F-38).
        if (kind, action) == (FilterKind::Submission, FilterAction::Filter) {
            let (file, warnings) = judge_files(told, answer);
            judgement.file = file;
            judgement.warnings.extend(warnings);
        }
        judgement
    }

    fn validate(
        &self,
        job: &DescribedJob,
        templates: &[Arc<TemplateSpec>],
        default_template: Option<&TemplateSpec>,
        now: Timestamp,
    ) -> Result<Validated, String> {
        // Groups are only needed if an access list names them; the list is in the template's text.
        let has_access_list = templates.iter().any(|template| template.text.contains("Group="));
        let groups = if has_access_list { groups_of(&job.owner) } else { Vec::new() };
        let mut validated = jobs::validate(job, &groups, templates, default_template, now)?;
        if !job.spec.attributes.contains_key(jobs::FORMAT_ATTRIBUTE) {
            self.take_requests(job, &mut validated)?;
        }
        Ok(validated)
    }
}

impl SiteDescriptions {
    /// The request of a job, or of the component that a call is about, in words of its dialect.
    fn request(&self, job: &DescribedJob) -> BTreeMap<String, String> {
        self.dialects.telling(&job.spec).map(|dialect| dialect.request(job)).unwrap_or_default()
    }

    /// Applies changes that filters made to the requests of components.
    fn take_requests(&self, job: &DescribedJob, validated: &mut Validated) -> Result<(), String> {
        let Some(dialect) = self.dialects.telling(&job.spec) else { return Ok(()) };
        let whole = job.document.iter().filter(|_| job.changed.is_empty()).map(|document| (0, document));
        let changed: Vec<_> = whole.chain(job.changed.iter().map(|(offset, document)| (*offset, document))).collect();
        for (offset, document) in changed {
            let Some(part) = job.of_component(offset) else { continue };
            let prefix = if job.spec.components.len() > 1 { format!("{offset}: ") } else { String::new() };
            let after = jobs::request_of(document).map_err(|error| format!("{prefix}{error}"))?;
            let spec = &mut validated.spec;
            dialect
                .take_request(spec, offset, &self.request(&part), &after)
                .map_err(|why| format!("{prefix}[JobNotValid] {why}"))?;
        }
        Ok(())
    }
}

/// The ledger checks changes against templates (HPC-T-10).
impl TemplateLimits for SiteDescriptions {
    fn makes_checks(&self) -> bool {
        true
    }

    fn check(
        &self,
        job: &DescribedJob,
        templates: &[Arc<TemplateSpec>],
        default_template: Option<&TemplateSpec>,
        now: Timestamp,
    ) -> Result<Validated, String> {
        self.validate(job, templates, default_template, now)
    }

    fn refusal(&self, changed: &ledger::ChangedJob) -> Option<String> {
        let has_limits = |template: Option<&TemplateSpec>| template.is_some_and(|template| !template.text.is_empty());
        let ledger::ChangedJob { change, asked, is_task_list, by_administrator, template, default_template } = *changed;
        if !has_limits(template) && !has_limits(default_template) {
            return None;
        }
        let changed = jobs::ChangedJob { change, asked, is_own: is_task_list, by_administrator };
        match jobs::change_breaches(changed, template, default_template) {
            Ok(breaches) if breaches.is_empty() => None,
            Ok(breaches) => Some(breaches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
            Err(refusal) => Some(refusal.to_string()),
        }
    }
}

const fn hold(until: result_file::HoldUntil) -> FilterHold {
    match until {
        result_file::HoldUntil::At(time) => FilterHold::At(time),
        result_file::HoldUntil::After(seconds) => FilterHold::Seconds(seconds as i64),
    }
}

/// Judges the files that a submission filter left (HPC-F-11 to HPC-F-17).
fn judge_files(told: &Description, answer: &Answer) -> (FileAfter, Vec<JobWarning>) {
    let xml = (Format::Xml, &told.xml, &answer.document);
    let json = answer.document_json.as_ref().map(|after| (Format::Json, &told.json, after));
    let changed = [Some(xml), json].into_iter().flatten().filter(|(_, _, after)| **after != Left::Unchanged);
    let changed: Vec<(Format, &Bytes, &Left)> = changed.collect();
    match answer.result {
        FilterExit::Code(1) => match changed[..] {
            [] => (FileAfter::Unchanged, Vec::new()),
            [(format, before, after)] => take(format, before, after),
            _ => (FileAfter::Bad("both job.xml and job.json are changed; change one of them".into()), Vec::new()),
        },
        FilterExit::Code(0) => {
            let unannounced = changed.first().and_then(|(_, before, after)| match after {
                Left::Changed(after) => changes::unannounced(before, after),
                _ => changes::unannounced(before, b""),
            });
            (FileAfter::Unchanged, unannounced.into_iter().map(Into::into).collect())
        }
        _ => (FileAfter::Unchanged, Vec::new()),
    }
}

fn take(format: Format, before: &Bytes, after: &Left) -> (FileAfter, Vec<JobWarning>) {
    let taken = match after {
        Left::Unchanged => return (FileAfter::Unchanged, Vec::new()),
        Left::Changed(after) => changes::judge(format, before, after).map_err(|bad| bad.to_string()),
        Left::Missing => Err(BadOutput::Missing.to_string()),
        Left::NotRegular(what) => Err(format!("{}: {what}", BadOutput::NotRegularFile)),
        Left::TooLarge(bytes) => Err(format!("it has {bytes} bytes, more than are read")),
    };
    let taken = match taken {
        Ok(taken) => taken,
        Err(why) => return (FileAfter::Bad(why), Vec::new()),
    };
    let warnings = taken.warnings.into_iter().map(Into::into).collect();
    if taken.differences.is_empty() {
        return (FileAfter::Unchanged, warnings);
    }
    let change = |difference: changes::Difference| PropertyChange {
        property: difference.attribute,
        old: difference.old,
        new: difference.new,
    };
    let text = taken.description.write_as(format, &SystemValues::default());
    let document = jobs::pack(format, text.as_bytes());
    if document.bytes.len() > jobs::MOST_STORED_BYTES {
        let why = format!("it takes {} bytes compressed, more than are kept", document.bytes.len());
        return (FileAfter::Bad(why), warnings);
    }
    let template = taken.description.attributes.job_template.clone();
    let changes = taken.differences.into_iter().map(change).collect();
    (FileAfter::Changed { document, changes, template }, warnings)
}

/// The names of a user's groups on this host: templates are open to users and to groups (HPC-T-08).
fn groups_of(owner: &Owner) -> Vec<String> {
    use nix::unistd::{Gid, Group, getgrouplist};
    let Ok(name) = CString::new(owner.user.as_str()) else { return Vec::new() };
    let groups = getgrouplist(&name, Gid::from_raw(owner.gid)).unwrap_or_default();
    groups.into_iter().filter_map(|group| Some(Group::from_gid(group).ok()??.name)).collect()
}
