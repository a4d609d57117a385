//! `strigger`.

use super::{Ended, print, site::Site, wanted};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId, JobId,
    trigger::{TriggerOn, TriggerSelection, TriggerSpec, WatchedNodes},
    views::ErrorCode,
};
use muster_slurm::{
    job_id::IdExpression,
    queries::{
        Failure,
        strigger::{Deed, Happening, Which, Wish, parse},
    },
    show::strigger,
};

/// Runs a command line of `strigger`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    let said = match command.deed {
        Deed::Set(wish) => set(site, wish)?,
        Deed::Get { which, no_header } => {
            let triggers = site.client.triggers(Moment::Now).map_err(|error| site.failure(&error))?.triggers;
            print(&strigger::list(&triggers, &by_name(which), no_header));
            format!("Read {} trigger records", triggers.len())
        }
        Deed::Clear(which) => match clear(site, by_name(which)) {
            Err(_) if command.is_quiet => return Ok(0),
            said => said?,
        },
    };
    if command.is_verbose {
        stderr_line!("strigger: {said}");
    }
    Ok(0)
}

/// A user's number means the user with it.
fn by_name(which: Which) -> Which {
    let name = |user: String| user.parse().map_or(user, super::site::user_name);
    Which { user: which.user.map(name), ..which }
}

fn set(site: &mut Site, wish: Wish) -> Result<String, Failure> {
    site.asks("slurm_set_trigger");
    if let Some(path) = wish.program.first() {
        let invalid = |text: &str| Failure::error("strigger", format_args!("Invalid --program value, {text}"));
        let found = std::fs::metadata(path).map_err(|_| invalid("file not found"))?;
        if !found.is_file() {
            return Err(invalid("not regular file"));
        }
    }
    let job = wish.job.map(|number| job(site, number)).transpose()?;
    let on = match (wish.on, job) {
        (Happening::Fini, Some(job)) => TriggerOn::JobEnds(job),
        (Happening::Time, Some(job)) => TriggerOn::WalltimeEnds(job),
        (Happening::Node(turn), Some(job)) => TriggerOn::Nodes { nodes: WatchedNodes::OfJob(job), turn },
        (Happening::Node(turn), None) => {
            let all = wish.nodes.is_empty();
            let nodes = if all { WatchedNodes::All } else { WatchedNodes::Named(wish.nodes) };
            TriggerOn::Nodes { nodes, turn }
        }
        (Happening::Fini | Happening::Time, None) => return Err(refusal("set", "Invalid job id specified")),
    };
    let Wish { offset_seconds, program, is_permanent, .. } = wish;
    let spec = TriggerSpec { on, offset_seconds, program, is_permanent };
    let done = site.client.set_trigger(CommandId::new_now(), &spec);
    done.map_err(|error| refused(site, "set", &error))?;
    Ok("trigger set".to_owned())
}

/// The job or task with a number.
fn job(site: &mut Site, number: u64) -> Result<JobId, Failure> {
    let invalid = || refusal("set", "Invalid job id specified");
    let id = IdExpression::parse(&number.to_string()).ok_or_else(invalid)?;
    let views = site.named(std::slice::from_ref(&id))?;
    views.first().map(|view| view.id).ok_or_else(invalid)
}

fn clear(site: &mut Site, which: Which) -> Result<String, Failure> {
    site.asks("slurm_clear_trigger");
    let said = match (which.job, &which.user, which.id) {
        (Some(job), ..) => format!("triggers for job {job} cleared"),
        (None, Some(user), _) => format!("triggers for user {user} cleared"),
        (None, None, id) => format!("trigger {} cleared", id.unwrap_or(0)),
    };
    let job = which.job.map(JobId::job);
    let selection = TriggerSelection { trigger: which.id, job, user: which.user };
    let done = site.client.clear_triggers(CommandId::new_now(), &selection);
    done.map_err(|error| refused(site, "clear", &error))?;
    Ok(said)
}

fn refusal(deed: &str, text: &str) -> Failure {
    Failure::plain(format_args!("slurm_{deed}_trigger: {text}"))
}

/// Why the system did not do it, in Slurm's words if it has some.
fn refused(site: &Site, deed: &str, error: &ClientError) -> Failure {
    let says = |text: &str| error.to_string().contains(text);
    match error.code() {
        None => site.failure(error),
        Some(ErrorCode::PermissionDenied) => refusal(deed, "Access/permission denied"),
        Some(ErrorCode::NotFound) if says("node `") => refusal(deed, "Invalid node name specified"),
        Some(ErrorCode::Conflict) if says("is over") => refusal(deed, "Job/step already completing or completed"),
        Some(_) => refusal(deed, &error.to_string()),
    }
}
