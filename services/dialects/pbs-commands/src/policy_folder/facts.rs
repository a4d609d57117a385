//! What presets have to know of a site that stands neither in their folder nor in the log: outages, as a program prints them,
//! and the allocations of groups (PBS-P-03, PBS-P-14).

use super::bounded::{self, NOBODY};
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
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long the program may take for a host.
const PROGRAM_LIMIT: Duration = Duration::from_secs(30);

/// The name of the file that names the program.
const CONFIG_FILE: &str = "config";

/// The known facts, with the age of each answer.
pub(super) struct Facts {
    /// The file that names the program.
    config_file: PathBuf,
    /// The account that the program runs as.
    account: String,
    answers: BTreeMap<String, Answer>,
    /// The groups above their allocation; `None` as long as nothing was found out.
    over_allocation: Option<Vec<u32>>,
    /// The mistakes in them that were told last.
    told: Vec<String>,
}

struct Answer {
    at: Instant,
    outages: Result<Outages, String>,
}

impl Facts {
    /// Nothing is known yet of the site with this folder.
    pub fn of_folder(folder: &Path) -> Self {
        Self {
            config_file: folder.join(CONFIG_FILE),
            account: NOBODY.to_owned(),
            answers: BTreeMap::new(),
            over_allocation: None,
            told: Vec::new(),
        }
    }

    /// Names the account that the program runs as. It is `nobody` in place of root.
    pub fn run_as(&mut self, account: String) {
        self.account = account;
    }

    /// Whether it is known which groups are above their allocation.
    pub const fn know_groups(&self) -> bool {
        self.over_allocation.is_some()
    }

    /// Begins with these groups above their allocation: those of the policy in force, so that a restart lets nobody start more.
    pub fn begin_with(&mut self, groups: Vec<u32>) {
        self.over_allocation = Some(groups);
    }

    /// Adds the facts to a site. What cannot be found out is unknown: nothing starts on a host whose outages are, and groups
    /// stay where they were.
    ///
    /// Returns what is wrong, if that was not told the last time.
    pub fn tell(&mut self, config: &PresetConfig, site: &mut Site) -> Vec<String> {
        let mut wrong = self.ask(config, site);
        if config.enforce_allocation.holds(site.now, &site.range.zone) {
            match config.accounting_folder.as_deref().map(|folder| over_allocation(Path::new(folder))) {
                Some(Ok(groups)) => self.over_allocation = Some(groups),
                Some(Err(why)) => wrong.extend(why.into_iter().map(|why| format!("SCHED_ACCT_DIR: {why}"))),
                None => {}
            }
            site.over_allocation = self.over_allocation.clone().unwrap_or_default();
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
                let outages = self.outages_of(command, &name);
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

    /// What the program says of a name. It is not started if others than root can change it, or what names it.
    fn outages_of(&self, command: &str, name: &str) -> Result<Outages, String> {
        muster_names::guarded(&self.config_file)?;
        let program = muster_names::guarded(Path::new(command))?;
        let answer = bounded::output(&program, name, bounded::account(&self.account)?, PROGRAM_LIMIT)?;
        outages::read(&answer).map_err(|mistakes| mistakes.first().map(Finding::located).unwrap_or_default())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
    use muster_pbs_policy::{
        check::check,
        engine::{Limits, Range},
        lines::Source,
        preset::Preset,
        routes::Host,
    };
    use std::{fs, os::unix::fs::PermissionsExt as _};

    /// PBS-P-03, PBS-P-14: the program is asked about each host with queues and about the system, and what it has said is kept for
    /// `DEDICATED_TIME_CACHE_SECS`.
    #[test]
    fn answers_are_kept_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let (program, said) = (folder.path().join("outages"), folder.path().join("asked"));
        fs::write(folder.path().join(CONFIG_FILE), "").unwrap();
        fs::write(&said, "").unwrap();
        fs::write(&program, format!("#!/bin/sh\necho \"$1\" >> {}\n", said.display())).unwrap();
        let modes = [(folder.path(), 0o755), (said.as_path(), 0o666), (program.as_path(), 0o755)];
        for (path, mode) in modes {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut facts = Facts::of_folder(folder.path());
        let mut asked_after = |cache: &str| {
            let text = format!(
                "SUBMIT_QUEUE submit\nBATCH_QUEUES batch@alpha.site,large@beta\nSYSTEM_NAME Cluster\n\
                 ENFORCE_DEDICATED_TIME true\nDEDICATED_TIME_COMMAND {}\nDEDICATED_TIME_CACHE_SECS {cache}\n",
                program.display()
            );
            let sources = [Source::new("config", &text), Source::new("holidays", "YEAR 2026\n")];
            let checked = check(&sources, Some(Preset::SgiOrigin));
            let config = checked.policy.unwrap_or_else(|| panic!("{:?}", checked.errors)).preset.unwrap();
            let mut site = site();
            assert_eq!(facts.ask(&config, &mut site), Vec::<String>::new());
            assert_eq!(site.outages.keys().collect::<Vec<_>>(), ["alpha", "beta", "cluster"]);
            fs::read_to_string(&said).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(asked_after("300"), ["alpha", "beta", "cluster"]);
        assert_eq!(asked_after("300").len(), 3, "the answers are fresh");
        assert_eq!(asked_after("0").len(), 6);
    }

    fn site() -> Site {
        let now = Timestamp::UNIX_EPOCH;
        let host = |name: &str| (name.to_owned(), Host { processors: 4, ..Host::default() });
        Site {
            server: Limits::default(),
            queues: Vec::new(),
            hosts: ["alpha", "beta", "unused"].map(host).into(),
            whole_nodes: None,
            outages: BTreeMap::new(),
            over_allocation: Vec::new(),
            now,
            range: Range { from: now, until: now + 24.hours(), zone: TimeZone::UTC },
        }
    }

    /// PBS-P-14: no program is asked that others can change, or that others can name.
    #[test]
    fn only_programs_in_good_hands_are_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (config, program) = (folder.path().join(CONFIG_FILE), folder.path().join("outages"));
        fs::write(&config, "").unwrap();
        fs::write(&program, "#!/bin/sh\necho other 01/01/2020 00:00-12:00 12/31/2199 elsewhere\n").unwrap();
        let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let modes = [(folder.path(), 0o755), (config.as_path(), 0o644), (program.as_path(), 0o755)];
        modes.iter().for_each(|(path, mode)| set_mode(path, *mode));
        let facts = Facts::of_folder(folder.path());
        let asked = || facts.outages_of(&program.display().to_string(), "alpha").map(drop);
        assert_eq!(asked(), Ok(()));
        for (path, mode) in modes {
            set_mode(path, mode | 0o020);
            let why = asked().unwrap_err();
            assert!(why.contains("can write there"), "{}: {why}", path.display());
            set_mode(path, mode);
        }
        assert_eq!(asked(), Ok(()));
    }
}
