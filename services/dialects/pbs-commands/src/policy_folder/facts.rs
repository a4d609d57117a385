//! What presets have to know of a site that stands neither in their folder nor in the log: outages, as a program prints them,
//! and the allocations of groups (PBS-P-03, PBS-P-14).

use super::bounded;
use muster_pbs_policy::{
    allocations,
    findings::Finding,
    folder::{self, FolderError},
    outages::{self, Outages},
    preset::PresetConfig,
    routes::Site,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

/// How long the program may take for a host.
const PROGRAM_LIMIT: Duration = Duration::from_secs(30);

/// The known facts, with the age of each answer.
#[derive(Default)]
pub(super) struct Facts {
    answers: BTreeMap<String, Answer>,
    over_allocation: Vec<u32>,
    /// The mistakes in them that were told last.
    told: Vec<String>,
}

struct Answer {
    at: Instant,
    outages: Result<Outages, String>,
}

impl Facts {
    /// Adds the facts to a site. What cannot be found out is unknown: nothing starts on a host whose outages are, and groups
    /// stay where they were.
    ///
    /// Returns what is wrong, if that was not told the last time.
    pub fn tell(&mut self, config: &PresetConfig, site: &mut Site) -> Vec<String> {
        let mut wrong = self.ask(config, site);
        if config.enforce_allocation.holds(site.now, &site.range.zone) {
            match config.accounting_folder.as_deref().map(|folder| over_allocation(Path::new(folder))) {
                Some(Ok(groups)) => self.over_allocation = groups,
                Some(Err(why)) => wrong.extend(why.into_iter().map(|why| format!("SCHED_ACCT_DIR: {why}"))),
                None => {}
            }
            site.over_allocation.clone_from(&self.over_allocation);
        }
        if wrong == self.told {
            return Vec::new();
        }
        self.told.clone_from(&wrong);
        wrong
    }

    /// Forgets all answers: the files were read again.
    pub fn forget(&mut self) {
        self.answers.clear();
    }

    fn ask(&mut self, config: &PresetConfig, site: &mut Site) -> Vec<String> {
        let asked: BTreeSet<String> = site.asked(config);
        self.answers.retain(|name, _| asked.contains(name));
        let kept = Duration::from_secs(config.dedicated_time_cache_seconds.into());
        let command = config.dedicated_time_command.as_deref().unwrap_or_default();
        for name in asked {
            let is_fresh = self.answers.get(&name).is_some_and(|answer| answer.at.elapsed() < kept);
            if !is_fresh {
                let outages = outages_of(command, &name);
                self.answers.insert(name, Answer { at: Instant::now(), outages });
            }
        }
        let known = |(name, answer): (&String, &Answer)| (name.clone(), answer.outages.as_ref().ok().cloned());
        site.outages = self.answers.iter().map(known).collect();
        let wrong = |(name, answer): (&String, &Answer)| {
            let why = answer.outages.as_ref().err()?;
            Some(format!(
                "DEDICATED_TIME_COMMAND: the outages of {name} are not known, and nothing starts there: {why}"
            ))
        };
        self.answers.iter().filter_map(wrong).collect()
    }
}

fn outages_of(command: &str, name: &str) -> Result<Outages, String> {
    let answer = bounded::output(command, name, PROGRAM_LIMIT)?;
    outages::read(&answer).map_err(|mistakes| mistakes.first().map(Finding::located).unwrap_or_default())
}

/// The numbers of the groups that have used more than their allocation. A group that this host does not know has no jobs.
fn over_allocation(folder: &Path) -> Result<Vec<u32>, Vec<String>> {
    let sources =
        folder::read_files(folder, &allocations::FILES).map_err(|error: FolderError| vec![error.to_string()])?;
    if let Some(missing) = allocations::FILES.iter().find(|name| sources.iter().all(|source| source.name != **name)) {
        return Err(vec![format!("there is no file {missing} in {}", folder.display())]);
    }
    let names = allocations::over(&sources)
        .map_err(|mistakes| mistakes.iter().map(Finding::located).collect::<Vec<String>>())?;
    let mut groups = Vec::new();
    for name in names {
        groups.extend(muster_names::group_number(&name).map_err(|error| vec![format!("group {name}: {error}")])?);
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}
