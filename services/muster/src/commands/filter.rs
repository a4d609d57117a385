//! `muster filter test`: one call of a filter under the same account, limits and environment as any other, for a job
//! that does not exist (HPC-F-69).

use crate::{
    cli::{ConnectionOptions, FilterTestOptions, QueryOptions},
    config,
    descriptions::SiteDescriptions,
    dialects::DIALECTS,
    exit::{CommandResult, Failure, Status},
};
use muster_cli::stderr_line;
use muster_client::Moment;
use muster_commands::filters::read;
use muster_domain::filters::verdict::{self, Attempt};
use muster_filter_runner::{Answer, Call, Description, Descriptions as _, Runner, RunnerConfig};
use muster_hpcpack::jobs;
use muster_hpcpack_commands::read_file;
use muster_names::User;
use muster_schemas::{
    JobId, Timestamp,
    event::Owner,
    filter::{
        ActivationParameters, ChainVerdict, FileAfter, FilterAction, FilterForm, FilterKind, FilterReport, FilterSpec,
        TemplateSpec,
    },
    filter_order::DescribedJob,
    job::{JobSpec, JobState},
};
use std::{fmt::Write as _, path::Path, sync::Arc};

/// The call to try.
struct Trial {
    filter: FilterSpec,
    time_limit_seconds: u32,
    kind: FilterKind,
    action: FilterAction,
    parameters: Option<ActivationParameters>,
}

/// Runs one filter and prints its answer. The status is 0 if the job would have passed.
pub fn test(connection: &ConnectionOptions, options: &FilterTestOptions) -> CommandResult {
    let loaded = config::load(options.config.as_deref())?;
    let trial = trial(connection, options)?;
    let template = |name: &str| template(connection, name);
    let told = described(&options.job, trial.kind, template)?;
    let call = trial.call(&told);
    let answer = run(loaded.configuration.filter_runner, &call)?;
    let report = SiteDescriptions { dialects: DIALECTS }
        .judge(trial.kind, trial.action, &told, &answer)
        .into_report(&told, answer.clone());
    print!("{}", trial.text(&report, &answer, &told));
    Ok(u8::from(!trial.passes(&report)))
}

fn trial(connection: &ConnectionOptions, options: &FilterTestOptions) -> Result<Trial, Failure> {
    let parameters = parameters(options)?;
    let is_activation = parameters != ActivationParameters::default() || options.backfill.is_some();
    let asked_for = options.kind.map(FilterKind::from).or(is_activation.then_some(FilterKind::Activation));
    let (filter, kind, limit) = if Path::new(&options.filter).is_absolute() {
        let name = Path::new(&options.filter).file_name().map(|name| name.to_string_lossy().into_owned());
        let filter = FilterSpec {
            name: name.unwrap_or_else(|| options.filter.clone()),
            path: options.filter.clone(),
            form: options.form.into(),
            revert_on_unknown: false,
        };
        (filter, asked_for.unwrap_or(FilterKind::Submission), 15)
    } else {
        find(connection, &options.filter, asked_for)?
    };
    if is_activation && kind == FilterKind::Submission {
        return Err(Failure::usage("a submission filter is told no pass, index, backfill or count"));
    }
    let action = if options.revert { FilterAction::Revert } else { FilterAction::Filter };
    if options.revert && filter.form == FilterForm::Exec {
        return Err(Failure::usage("a filter of the form `exec` cannot be reverted; see --form"));
    }
    Ok(Trial {
        filter,
        time_limit_seconds: options.time_limit.unwrap_or(limit),
        kind,
        action,
        parameters: (kind == FilterKind::Activation).then_some(parameters),
    })
}

/// A defined filter, with the kind of its judgement and its time limit.
fn find(
    connection: &ConnectionOptions,
    name: &str,
    kind: Option<FilterKind>,
) -> Result<(FilterSpec, FilterKind, u32), Failure> {
    let all = read(&mut connection.client()?, &QueryOptions::default())?;
    let found = all.into_iter().find(|it| it.filter.name == name && kind.is_none_or(|kind| kind == it.kind));
    let missing = || {
        let hint = if name.contains('/') { "; the path of a program must be absolute" } else { "" };
        Failure::new(Status::NotFound, format!("no filter `{name}` is defined{hint}"))
    };
    let found = found.ok_or_else(missing)?;
    Ok((found.filter, found.kind, found.time_limit_seconds))
}

/// The parameters of an activation, in either notation.
fn parameters(options: &FilterTestOptions) -> Result<ActivationParameters, Failure> {
    let mut parameters = ActivationParameters {
        pass: options.pass.unwrap_or_default(),
        index: options.index.unwrap_or_default(),
        backfill: options.backfill.unwrap_or_default(),
        count: options.count.unwrap_or_default(),
        ..ActivationParameters::default()
    };
    for word in &options.more {
        take(&mut parameters, word)?;
    }
    Ok(parameters)
}

fn take(parameters: &mut ActivationParameters, word: &str) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::usage(format!("`{word}`: {what}"));
    let unknown = || wrong("expected /pass:N, /index:N, /backfill[:true|false] or /count:N");
    let (name, value) = match word.strip_prefix('/').ok_or_else(unknown)?.split_once(':') {
        Some((name, value)) => (name.to_lowercase(), Some(value)),
        None => (word[1..].to_lowercase(), None),
    };
    let number = || value.and_then(|value| value.parse().ok()).ok_or_else(|| wrong("expected a number"));
    match name.as_str() {
        "pass" => parameters.pass = number()?,
        "index" => parameters.index = number()?,
        "count" => parameters.count = number()?,
        "backfill" => {
            let truth = value.map_or(Ok(true), |value| value.to_lowercase().parse());
            parameters.backfill = truth.map_err(|_| wrong("expected true or false"))?;
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// The template of a name, if the system can be reached and has it; else one that allows everything.
fn template(connection: &ConnectionOptions, name: &str) -> TemplateSpec {
    let templates = connection.client().ok().and_then(|mut client| client.templates(Moment::Now).ok());
    let templates = templates.map(|page| page.templates).unwrap_or_default();
    let found = templates.into_iter().find(|template| template.name.to_lowercase() == name.to_lowercase());
    found.unwrap_or_else(|| TemplateSpec { name: name.to_owned(), ..TemplateSpec::default() })
}

/// The job of a file as a filter would see it: as it was specified, or for an activation with all defaults.
fn described(file: &Path, kind: FilterKind, template: impl Fn(&str) -> TemplateSpec) -> Result<Description, Failure> {
    let name = file.display();
    let bytes = read_file(&name.to_string())?;
    let refused = |error: String| Failure::failed(format!("{name}: {error}"));
    let (format, description, _) = jobs::readable(&bytes).map_err(|error| refused(error.to_string()))?;
    let spec = jobs::provisional(&description, format);
    let mut job = DescribedJob {
        id: JobId::job(0),
        owner: caller(),
        submitted: Timestamp::now(),
        state: JobState::Queued,
        is_entering: true,
        name: spec.name.clone(),
        priority: priority(&spec),
        walltime_seconds: None,
        alternatives: Arc::default(),
        spec: Arc::new(spec),
        tasks: None,
        template: jobs::template_of(&description),
        document: Some(jobs::pack(format, &bytes)),
        is_as_received: true,
        component: None,
        changed: Vec::new(),
    };
    if kind == FilterKind::Activation {
        let named = job.template.clone().unwrap_or_else(|| "Default".into());
        let (named, default) = (Arc::new(template(&named)), template("Default"));
        let validated = SiteDescriptions { dialects: DIALECTS }
            .validate(&job, &[named], Some(&default), job.submitted)
            .map_err(refused)?;
        let component = validated.spec.components.first();
        let alternative = component.and_then(|component| component.alternatives.first());
        job.walltime_seconds = alternative.and_then(|alternative| alternative.walltime_seconds);
        job.alternatives = component.map(|component| component.alternatives.clone()).unwrap_or_default().into();
        job.name.clone_from(&validated.spec.name);
        job.priority = priority(&validated.spec);
        job.document = validated.document;
        job.spec = Arc::new(validated.spec);
        (job.is_entering, job.is_as_received) = (false, false);
    }
    SiteDescriptions { dialects: DIALECTS }.describe(&job).map_err(refused)
}

fn priority(spec: &JobSpec) -> i64 {
    spec.components.first().and_then(|component| component.priority).unwrap_or_default()
}

/// The user who tries a filter out is the owner of the job.
fn caller() -> Owner {
    let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    let user = User::numbered(uid).map_or_else(|| uid.to_string(), |user| user.name);
    Owner { user, uid, gid }
}

fn run(config: RunnerConfig, call: &Call) -> Result<Answer, Failure> {
    let runner = Runner::new(config).map_err(|error| Failure::failed(error.to_string()))?;
    stderr_line!("{}", runner.account());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(runner.run(call)).map_err(|error| Failure::failed(error.to_string()))
}

impl Trial {
    fn call(&self, told: &Description) -> Call {
        let trial = Call::trial(self.filter.clone(), self.time_limit_seconds, told.xml.clone(), self.parameters);
        Call { kind: self.kind, action: self.action, document_json: Some(told.json.clone()), ..trial }
    }

    fn passes(&self, report: &FilterReport) -> bool {
        match self.action {
            FilterAction::Filter => self.answer(report).passes(self.kind),
            FilterAction::Revert => self.answer(report).revert_warning().is_none(),
        }
    }

    fn answer<'a>(&'a self, report: &'a FilterReport) -> verdict::Answer<'a> {
        verdict::Answer { filter: &self.filter, limit_seconds: self.time_limit_seconds, report }
    }

    fn text(&self, report: &FilterReport, answer: &Answer, told: &Description) -> String {
        let mut text = format!("verdict: {}\n", self.verdict(report));
        // Writing to a string cannot fail.
        if let FileAfter::Changed { changes, .. } = &report.file {
            for change in changes {
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not specified".into());
                let _ = writeln!(text, "change: {}: {} -> {}", change.property, shown(&change.old), shown(&change.new));
            }
        }
        for warning in &report.warnings {
            let _ = writeln!(text, "warning: [{}] {}", warning.code, warning.text);
        }
        if let Some(message) = &report.message {
            let _ = writeln!(text, "message: {message}");
        }
        text + &answer.report(&told.xml)
    }

    /// What the answer would mean for a job, in words.
    fn verdict(&self, report: &FilterReport) -> String {
        let answer = self.answer(report);
        match (self.action, self.kind) {
            (FilterAction::Revert, _) => answer.revert_warning().map_or_else(
                || "it undid what it had done".into(),
                |warning| format!("[{}] {}", warning.code, warning.text),
            ),
            (FilterAction::Filter, FilterKind::Submission) => match answer.submission_failure() {
                Some(failure) => failure,
                None if answer.changes() => "the job passes, with changes".into(),
                None => "the job passes, unchanged".into(),
            },
            (FilterAction::Filter, FilterKind::Activation) => {
                let backfill = self.parameters.is_some_and(|parameters| parameters.backfill);
                let attempt = if backfill { Attempt::Backfill } else { Attempt::Start };
                let (means, _) = verdict::activation(attempt, &report.exit);
                let warning = answer.activation_warning(attempt);
                let because = warning.map_or_else(String::new, |it| format!("; [{}] {}", it.code, it.text));
                format!("{}{because}", activation_words(means))
            }
            (FilterAction::Filter, FilterKind::StageIn | FilterKind::StageOut) => {
                answer.staging_failure().unwrap_or_else(|| "it is staged".into())
            }
        }
    }
}

const fn activation_words(verdict: ChainVerdict) -> &'static str {
    match verdict {
        ChainVerdict::Pass => "the job starts",
        ChainVerdict::Block => "the job stays queued and blocks all of its priority and below",
        ChainVerdict::Reserve => "the job stays queued, and its candidate resources are kept for it",
        ChainVerdict::Hold => "the job is held",
        ChainVerdict::Fail => "the job fails",
        ChainVerdict::NotNow => "the job stays unchanged, and others get the candidate resources",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_also_written_with_slashes() {
        let mut parameters = ActivationParameters::default();
        for word in ["/pass:7", "/INDEX:3", "/backfill:True", "/count:16"] {
            take(&mut parameters, word).unwrap();
        }
        let expected =
            ActivationParameters { pass: 7, index: 3, backfill: true, count: 16, ..ActivationParameters::default() };
        assert_eq!(parameters, expected);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for wrong in ["pass:7", "/passes:7", "/count:many", "/count", "/backfill:maybe"] {
            let refused = take(&mut ActivationParameters::default(), wrong).unwrap_err();
            assert!(refused.message.contains(wrong), "{}", refused.message);
        }
    }
}
