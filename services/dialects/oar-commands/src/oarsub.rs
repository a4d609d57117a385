//! `oarsub`.

use super::{
    answer::{refused, require_accepted},
    ended::{Ended, Failure, print},
    interactive,
    jobs::{self, seconds},
    lower::{self, BESTEFFORT_CLASS, Caller, Context, keys},
    reserved,
    site::{Site, user_name},
    staging,
};
use muster_cli::{caller, connection::ConnectionOptions, foreign, stderr_line, verdict::wait_until_decided};
use muster_client::{ClientError, JobQuery, Moment};
use muster_names::{User, group_name};
use muster_oar::{
    life::{
        connect::{self, Candidate},
        state::State,
        target::Target,
    },
    options::{
        anterior::Policy,
        array,
        getopt::{self, Name, Words},
        rules::{self, SiteRules},
        script,
        submission::{self, Array, Submission},
        types::{Kind, Reading},
    },
    refusal::{Code, Refusal},
    request::site::Site as Names,
    show::{
        document::{Form, written},
        submitted,
    },
    text::{decimal, shown},
};
use muster_schemas::{
    CommandId, JobId,
    cluster::{ClusterConfig, QueueSpec},
    domains,
    job::{JobSpec, JobState, JobType},
    views::ErrorCode,
};
use nix::unistd::{Uid, getgroups};
use std::io::Read as _;

const USAGE: &str = "usage: oarsub [-I | -S] [-l REQUEST] [-p FILTER] [-q QUEUE] [-t TYPE] [-a JOB] [-n NAME] \
                     [-d FOLDER] [-O FILE] [-E FILE] [-r START] [--array N] [--array-param-file FILE] [--hold] \
                     [--project NAME] [--notify HOW] [--checkpoint SECONDS] [--signal N] [-s FOLDER|TGZ] \
                     [--stagein-md5sum SUM] [COMMAND]\n       \
                     oarsub -C [JOB]\n       oarsub --resubmit JOB\n";
/// The greatest script or file of parameters.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The exit status for a script or a file of parameters that cannot be read.
const BAD_FILE: u8 = 12;

/// Runs a command line of `oarsub`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    let mut words = getopt::read(words)?;
    if words.has(Name::Help) {
        print(USAGE);
        return Ok(0);
    }
    let user = User::numbered(Uid::effective().as_raw());
    let shell = user.map(|user| user.shell).unwrap_or_default();
    if let Some(job) = words.value(Name::Connect) {
        let named = if job.is_empty() { None } else { Some(id(job)?) };
        return connect(&mut Site::open(connection)?, named, &shell);
    }
    if let Some(job) = words.value(Name::Resubmit) {
        let job = id(job)?;
        return resubmit(&mut Site::open(connection)?, job, &words);
    }
    let request = lower::request_of(&words);
    let mut warnings = directives(&mut words)?;
    let mut site = Site::open(connection)?;
    let cluster = site.cluster()?;
    let now = site.now();
    let zone = site.zone.clone();
    let config = site.client.config(Moment::Now)?;
    // What quotas count as a kind of jobs is a type that jobs can have (OAR-T-01).
    let site_types = config.settings.quotas.as_ref().map(|table| table.kinds.as_slice()).unwrap_or_default();
    let reading = Reading { now, zone: &zone, site_types };
    let mut submission = submission::read(&words, &Names::of(&cluster.table), reading)?;
    let site_filter = apply_rules(&mut site, &mut submission)?;
    warnings.append(&mut submission.warnings);
    let process = caller::Caller::this_process(connection).map_err(|failure| Failure::new(failure.to_string()))?;
    let caller = Caller {
        shell: shell.clone(),
        directory: process.directory,
        environment: process.environment,
        umask: process.umask,
    };
    let parameters = match &submission.array {
        Array::Parameters(file) => array::parameters(&text_of(file)?)?,
        _ => Vec::new(),
    };
    let has_besteffort_class = submission.is(|kind| *kind == Kind::BestEffort) && makes_way(&mut site)?;
    let after = if submission.dependencies.is_empty() { Policy::Strict } else { policy_of(&config, &submission)? };
    let front = front(&config, &submission);
    let context = Context {
        cluster: &cluster,
        site_filter,
        caller: &caller,
        has_besteffort_class,
        request,
        parameters,
        now,
        after,
        front,
        licences: config.licences,
    };
    let mut specs = lower::lower(&submission, &context, &mut warnings)?;
    if let Some(wanted) = &submission.stage_in {
        let archive = staging::send(&mut site.client, wanted)?;
        let components = specs.iter_mut().flat_map(|spec| &mut spec.components);
        components.for_each(|component| component.launch.stage_in = Some(archive.clone()));
    }
    for spec in &mut specs {
        for (name, value) in &process.instance {
            spec.environment.entry((*name).to_owned()).or_insert_with(|| value.clone());
        }
    }
    warnings.iter().for_each(|warning| stderr_line!("oarsub: warning: {warning}"));
    match (submission.is_interactive, specs.pop()) {
        (true, Some(spec)) => interactive::submit(&mut site, spec, &shell),
        (_, last) => {
            specs.extend(last);
            let is_array = submission.array != Array::Single;
            let jobs = send(&mut site, specs, is_array, form(&words))?;
            if submission.reservation.is_some() { reserved::wait(&mut site, &jobs) } else { Ok(0) }
        }
    }
}

fn id(text: &str) -> Result<u64, Refusal> {
    let wrong = || Refusal::new(Code::Usage, format!("expected the id of a job, found '{}'", shown(text)));
    decimal::<u64>(text).filter(|job| *job > 0).ok_or_else(wrong)
}

fn form(words: &Words) -> Option<Form> {
    let forms =
        [(Name::Json, Form::Json), (Name::Yaml, Form::Yaml), (Name::Xml, Form::Xml), (Name::Dumper, Form::Dumper)];
    forms.into_iter().find(|(name, _)| words.has(*name)).map(|(_, form)| form)
}

/// Adds the directives of the script that the command names (OAR-C-05).
fn directives(words: &mut Words) -> Result<Vec<String>, Failure> {
    if !words.has(Name::ScanScript) {
        return Ok(Vec::new());
    }
    let command = words.operands.join(" ");
    let file = command.split_whitespace().next().ok_or_else(|| {
        Failure::from(Refusal::new(Code::NothingToRun, "nothing to run: -S reads the script of the command"))
    })?;
    let text = text_of(file)?;
    let mut warnings = script::merge(words, script::directives(&text)?);
    let foreign = foreign::warnings(&text, script::PREFIX).into_iter();
    warnings.extend(foreign.map(|(line, warning)| format!("line {line}: {warning}")));
    Ok(warnings)
}

/// The text of a file that belongs to the submission.
fn text_of(path: &str) -> Result<String, Failure> {
    let failed = |why: String| Failure { text: format!("{}: {why}", shown(path)), status: BAD_FILE };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failed("it has more than 16 MiB".to_owned()));
    }
    // Only directives are read, so what is not text elsewhere does not matter.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The default rules of OAR, with the queues of this system. Rights are the system's own.
fn apply_rules(site: &mut Site, submission: &mut Submission) -> Result<muster_oar::predicate::Predicate, Failure> {
    let config = site.client.config(Moment::Now)?;
    let queues: Vec<String> = config.queues.iter().map(|queue| queue.name.clone()).collect();
    let standard = SiteRules::default();
    let default_queue = match config.settings.default_queue.is_empty() {
        true => queues.first().cloned().unwrap_or_default(),
        false => config.settings.default_queue.clone(),
    };
    let has_own = queues.contains(&standard.besteffort_queue);
    let besteffort_queue = if has_own { standard.besteffort_queue.clone() } else { default_queue.clone() };
    let many_reservations = config.settings.unlimited_fixed_starts.clone();
    let system_users = Vec::new();
    let rules = SiteRules { queues, default_queue, besteffort_queue, system_users, many_reservations, ..standard };
    let groups = getgroups().unwrap_or_default();
    let waiting_reservations = if submission.reservation.is_some() { reserved::waiting(site)? } else { 0 };
    let caller = rules::Caller {
        user: user_name(),
        groups: groups.into_iter().filter_map(|group| group_name(group.as_raw())).collect(),
        waiting_reservations,
    };
    let was_besteffort = submission.is(|kind| *kind == Kind::BestEffort);
    let inner = submission.types.iter().find_map(|one| match &one.kind {
        Kind::Inner(name) => Some(name.clone()),
        _ => None,
    });
    let container = inner.map_or(Ok(None), |name| container(site, &name))?;
    let filter = rules::apply(submission, &caller, &rules, &|_| container)?;
    if !has_own && !was_besteffort {
        // The queue of a site without one for best effort is for all jobs.
        submission.types.retain(|one| one.kind != Kind::BestEffort);
    }
    Ok(filter)
}

/// The attribute of a queue that says when dependents start: the word of a [`Policy`].
const DEPENDENCIES: &str = "oar.dependencies";

/// The attributes of a queue with the hosts on which commands of these types run, and with the queue that the hosts serve, if
/// that is another one.
const DEPLOY_HOST: &str = "oar.deploy_host";
const COSYSTEM_HOST: &str = "oar.cosystem_host";
const FRONT_QUEUE: &str = "oar.front_queue";

/// The queue of a submission.
fn queue_of<'c>(config: &'c ClusterConfig, submission: &Submission) -> Option<&'c QueueSpec> {
    let name = submission.queue.as_ref().unwrap_or(&config.settings.default_queue);
    config.queues.iter().find(|queue| queue.name == *name)
}

/// Which end of a job lets those start that depend on it: as the queue of the dependent says, by default any end if quotas are in
/// force (OAR-D-02, OAR-D-03, OAR-D-04).
fn policy_of(config: &ClusterConfig, submission: &Submission) -> Result<Policy, Refusal> {
    let queue = queue_of(config, submission);
    let Some((queue, word)) = queue.and_then(|queue| Some((queue, queue.attributes.get(DEPENDENCIES)?))) else {
        return Ok(if config.settings.quotas.is_some() { Policy::Always } else { Policy::Strict });
    };
    let unknown = || {
        let why = "expected strict, always or error-passes; an operator sets it";
        let text = format!("{DEPENDENCIES} of the queue {} is '{}': {why}", shown(&queue.name), shown(word));
        Refusal::option(Code::Rule, "-a", text)
    };
    Policy::named(word).ok_or_else(unknown)
}

/// The host that the queue of a job names for its type (OAR-T-50, OAR-T-60).
fn front(config: &ClusterConfig, submission: &Submission) -> Option<lower::Front> {
    let attributes = &queue_of(config, submission)?.attributes;
    let key = match Target::of(&submission.types) {
        Target::DeployHost => DEPLOY_HOST,
        Target::CosystemHost => COSYSTEM_HOST,
        Target::FirstNode | Target::Nowhere => return None,
    };
    Some(lower::Front { host: attributes.get(key)?.clone(), queue: attributes.get(FRONT_QUEUE).cloned() })
}

/// The container with this id or name. Those with names of their own are looked up when the job is submitted.
fn container(site: &mut Site, name: &str) -> Result<Option<rules::Container>, ClientError> {
    let Some(number) = decimal::<u64>(name) else {
        return Ok(Some(rules::Container { is_reservation: false, is_over: false }));
    };
    match site.client.job(JobId::job(number), Moment::Now) {
        Ok(detail) => Ok(domains::opened(&detail.spec.types, detail.job.id).map(|_| rules::Container {
            is_reservation: detail.spec.attributes.contains_key(keys::RESERVATION),
            is_over: detail.job.state == JobState::Finished,
        })),
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether jobs of the class for best effort make way for jobs of another one.
fn makes_way(site: &mut Site) -> Result<bool, ClientError> {
    let classes = site.client.accounts(Moment::Now)?.classes;
    let is_known = classes.iter().any(|class| class.name == BESTEFFORT_CLASS);
    Ok(is_known && classes.iter().any(|class| class.preempts.iter().any(|other| other == BESTEFFORT_CLASS)))
}

fn send(site: &mut Site, specs: Vec<JobSpec>, is_array: bool, form: Option<Form>) -> Result<Vec<JobId>, Failure> {
    let answer = site.client.submit(CommandId::new_now(), &specs).map_err(refused)?;
    if answer.is_judged {
        for job in &answer.jobs {
            require_accepted(&wait_until_decided(&mut site.client, *job)?)?;
        }
    }
    let ids: Vec<u64> = answer.jobs.iter().map(|job| job.number).collect();
    match (form, &ids[..]) {
        (None, _) => print(&submitted::lines(&ids, is_array)),
        (Some(form), [id]) => print(&written(&serde_json::json!({ "job_id": id }), form)),
        (Some(form), ids) => print(&written(&serde_json::json!({ "job_id": ids, "array_id": ids.first() }), form)),
    }
    Ok(answer.jobs)
}

/// Opens a shell in a running job of the caller.
fn connect(site: &mut Site, named: Option<u64>, shell: &str) -> Ended {
    let query = match named {
        Some(job) => JobQuery { ids: vec![JobId::job(job)], ..JobQuery::default() },
        None => JobQuery { user: Some(user_name()), states: vec![JobState::Running], ..JobQuery::default() },
    };
    let own = user_name();
    let ids: Vec<JobId> = site.client.jobs(&query)?.jobs.iter().map(|view| view.id).collect();
    let details = if ids.is_empty() { Vec::new() } else { site.client.job_details(&ids, false)?.jobs };
    let candidates: Vec<Candidate> = details
        .iter()
        .map(|detail| Candidate {
            job: detail.job.own_number(),
            state: jobs::state(detail),
            // Whether operators may is decided by the system.
            has_right: detail.job.owner == own || Uid::effective().is_root(),
            is_own: detail.job.owner == own,
            is_noop: detail.spec.types.contains(&JobType::Noop),
        })
        .collect();
    let job = connect::choose(named, &candidates).map_err(|(status, text)| Failure { text, status })?;
    interactive::connect(site, JobId::job(job), shell)
}

/// Submits a job that has ended again (OAR-J-22).
fn resubmit(site: &mut Site, job: u64, words: &Words) -> Ended {
    let refused_for = |code: i32, why: &str| {
        Err(Failure::from(Refusal::new(Code::Resubmission(code), format!("job {job} is not submitted again: {why}"))))
    };
    let detail = match site.client.job(JobId::job(job), Moment::Now) {
        Ok(detail) => detail,
        Err(error) if error.code() == Some(ErrorCode::NotFound) => return refused_for(-2, "it does not exist"),
        Err(error) => return Err(refused(error)),
    };
    let attribute = |key: &str| detail.spec.attributes.contains_key(key);
    if detail.job.owner != user_name() {
        return refused_for(-3, "it belongs to somebody else");
    }
    if attribute(keys::INTERACTIVE) || attribute(keys::RESERVATION) {
        return refused_for(-1, "it is interactive or a reservation");
    }
    if !matches!(jobs::state(&detail), State::Terminated | State::Error | State::Finishing) {
        return refused_for(-2, "it has not ended");
    }
    let mut spec = detail.spec;
    spec.attributes.insert(keys::REPLACES.to_owned(), job.to_string());
    // Jobs that wait for the other one wait for this one (OAR-D-05).
    spec.types.retain(|kind| !matches!(kind, JobType::TakesPlaceOf(_)));
    spec.types.push(JobType::TakesPlaceOf(JobId::job(job)));
    spec.attributes.remove(keys::INDEX);
    // An operator's remarks are about the other job, and its owner may not write them.
    spec.attributes.retain(|name, _| !muster_schemas::job::is_of_operators(name));
    spec.environment.remove(muster_oar::dialect::INDEX);
    let now = site.now();
    for part in &mut spec.components {
        part.begin = part.begin.filter(|begin| seconds(*begin) > now);
        part.dependencies.all_of.clear();
    }
    send(site, vec![spec], false, form(words)).map(|_| 0)
}
