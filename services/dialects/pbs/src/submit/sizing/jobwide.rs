//! Requests of `-l` for the whole job.

use super::{
    chunks::bytes,
    conditions::{equals, features},
    size::Size,
};
use crate::{
    refusal::Refusal,
    resources::{Chunk, Resource, Select},
    submit::rules::Rules,
    text::decimal,
    value::{parse_seconds, show_seconds},
};
use muster_schemas::resources::{Memory, Per};

/// The chunks of a job without `select` and `nodes`: one with what the job asks for, or one for each processor of
/// `procs`.
pub(super) fn select(requests: &[Resource]) -> Result<Select, Refusal> {
    let value = |name: &str| requests.iter().find(|request| request.name == name).map(Resource::plain);
    let count = match value("procs") {
        None => 1,
        Some(procs) => {
            let count = decimal::<u32>(&procs).filter(|count| (1..=1_000_000).contains(count));
            count.ok_or_else(|| Refusal::value("-l", &format!("procs={procs}"), "expected a number up to 1000000"))?
        }
    };
    let names = ["ncpus", "mem", "host", "vnode", "mpiprocs", "ompthreads", "ngpus", "gpus"];
    let of_one = |name: &&str| count == 1 || *name != "mem";
    let given = names.into_iter().filter(of_one).filter_map(|name| Some((name.to_owned(), value(name)?)));
    Ok(Select(vec![Chunk { count, resources: given.collect() }]))
}

/// Requests that are kept and shown: each with the reason why they have no effect.
const WITHOUT_EFFECT: [(&str, &str); 8] = [
    ("vmem", "virtual memory is not counted; mem is"),
    ("nice", "the site's nodes decide how nice jobs are"),
    ("software", "no nodes are chosen by software"),
    ("opsys", "no nodes are chosen by operating system"),
    ("other", "it is a word for a scheduler of the site"),
    ("soft_walltime", "only walltime limits a job"),
    ("min_walltime", "only walltime limits a job"),
    ("max_walltime", "only walltime limits a job"),
];

/// Requests that are read elsewhere.
const READ: [&str; 10] =
    ["select", "place", "nodes", "ncpus", "procs", "host", "vnode", "mpiprocs", "ompthreads", "ngpus"];

/// Adds what concerns the whole job.
pub(super) fn add(size: &mut Size, requests: &[Resource], rules: &Rules) -> Result<(), Refusal> {
    for request in requests {
        one(size, request, rules)?;
    }
    let processes = size.plan.mpiprocs();
    let all =
        requests.iter().find(|request| request.name == "mem").map(|mem| bytes("mem", &mem.plain())).transpose()?;
    // `procs` has its processors anywhere, so its memory is divided among them.
    if let Some(bytes) = all.filter(|_| requests.iter().any(|request| request.name == "procs")) {
        set_memory(size, bytes.div_ceil(processes.max(1)), Per::Task);
    }
    Ok(())
}

fn set_memory(size: &mut Size, bytes: u64, per: Per) {
    for request in &mut size.alternative.requests {
        request.memory = Some(Memory { bytes, per });
    }
}

fn one(size: &mut Size, request: &Resource, rules: &Rules) -> Result<(), Refusal> {
    let (name, value) = (request.name.as_str(), request.plain());
    let wrong = |why: &str| Err(Refusal::value("-l", &format!("{name}={value}"), why));
    if value.is_empty() {
        return wrong("it has no value");
    }
    if READ.contains(&name) {
        return Ok(());
    }
    let seconds = || {
        let expected = "expected seconds, MM:SS or HH:MM:SS";
        parse_seconds(&value).ok_or_else(|| Refusal::value("-l", &format!("{name}={value}"), expected))
    };
    let mut shown = value.clone();
    match name {
        "walltime" => {
            let walltime = seconds()?;
            if walltime == 0 {
                return wrong("a job has at least one second");
            }
            size.alternative.walltime_seconds = Some(walltime);
            shown = show_seconds(walltime);
        }
        "cput" => {
            size.alternative.cpu_seconds = Some(seconds()?);
            shown = show_seconds(seconds()?);
            size.tell("-l cput limits no job here: policies sort by it");
        }
        "pcput" => {
            size.limits.cpu_seconds = Some(seconds()?);
            shown = show_seconds(seconds()?);
        }
        "file" => size.limits.file_bytes = Some(bytes(name, &value)?),
        "pvmem" => size.limits.address_bytes = Some(bytes(name, &value)?),
        "mem" | "gpus" => {
            if name == "mem" {
                bytes(name, &value)?;
            }
        }
        "pmem" => add_process_memory(size, bytes(name, &value)?),
        "arch" => size.require(&equals(name, &value)),
        "feature" => size.require(&features(&value)?),
        "qos" => size.class = Some(value.clone()),
        "advres" => size.reservation = Some(value.clone()),
        "naccesspolicy" => match value.to_ascii_lowercase().as_str() {
            "shared" => {}
            "singlejob" | "singletask" => size.make_exclusive(),
            "singleuser" | "uniqueuser" | "singleaccount" | "singlegroup" => {
                return Err(Refusal::unsupported(
                    &format!("-l naccesspolicy={value}"),
                    "nodes are shared, or serve one job with singlejob",
                ));
            }
            _ => return wrong("expected shared or singlejob"),
        },
        name => match WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
            Some((_, why)) => size.warn(&format!("-l {name}"), why),
            None => add_unknown(size, name, &value, rules)?,
        },
    }
    size.show(name, shown);
    Ok(())
}

/// `pmem`: memory of each process, if the job says nothing of its memory otherwise.
fn add_process_memory(size: &mut Size, bytes: u64) {
    let kinds = size.plan.kinds.clone();
    if size.alternative.requests.iter().any(|request| request.memory.is_some()) {
        return size.warn("-l pmem", "the job says how much memory it needs with mem");
    }
    for (request, kind) in size.alternative.requests.iter_mut().zip(kinds) {
        let of_task = bytes.saturating_mul(u64::from(kind.mpiprocs.div_ceil(kind.tasks).max(1)));
        request.memory = Some(Memory { bytes: of_task, per: Per::Task });
    }
}

/// A number of an unknown resource is one of licences, which the cluster counts.
fn add_unknown(size: &mut Size, name: &str, value: &str, rules: &Rules) -> Result<(), Refusal> {
    if rules.kept_resources.contains(name) {
        return Ok(());
    }
    match decimal::<u32>(value) {
        Some(count) => {
            if count > 0 {
                size.alternative.licences.insert(name.to_owned(), count);
            }
            Ok(())
        }
        None => {
            let why = "no resource of this name is known; numbers of licences are";
            Err(Refusal::unsupported(&format!("-l {name}={value}"), why))
        }
    }
}
