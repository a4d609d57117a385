//! The chapters after the first page: their commands run on a system as the chapter assumes. Folders of a host stand
//! for folders of the test. Whatever would change the host is left out, line by line, each with its reason here.
//! `tests/tests/docs.rs` knows from the names of files here and in `pages.rs` that a page is executed.

use super::{Block, Content, Shown, blocks, page, repository};
use crate::system::{Output, System};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

/// The beginnings of lines, and why these lines are not executed.
pub type LeftOut = (&'static str, &'static str);

/// Looks at what the output of a job says: the place of its script, the script, and the output.
pub type JobCheck = fn(&str, &str, &str);

/// The beginnings of lines by which a block is the script of a job.
const DIRECTIVES: [&str; 4] = ["\n#SBATCH ", "\n#MUSTER ", "\n#PBS ", "\n#OAR "];
/// `oarsub` does not wait, and runs only what can be executed.
const BY_OARSUB: &str = "chmod +x block.sh; \
    job=$(oarsub -O block.out -E block.out -S ./block.sh | sed -n s/^OAR_JOB_ID=//p); \
    until oarstat -s -j $job | grep -q 'Terminated\\|Error'; do sleep 0.02; done; oarstat -s -j $job | grep -q Terminated";

/// Longer than anything a test waits for on a working machine.
const LOOKING: Duration = Duration::from_secs(60);

/// Commands that only look: they are typed again until they show what the page shows.
const LOOKS: [&str; 6] = ["qstat", "oarstat", "muster jobs", "muster explain", "muster whatif", "muster nodes"];

pub struct Chapter {
    file: &'static str,
    pub system: System,
    /// Words of the chapter, and their replacements here.
    stands_for: Vec<(&'static str, String)>,
    left_out: &'static [LeftOut],
    /// What a shell runs before each command.
    before: String,
    /// Whether all lines that the page shows are compared, and not the first one only.
    every_line: bool,
    job_check: Option<JobCheck>,
}

impl Chapter {
    pub fn new(file: &'static str, system: System) -> Self {
        // Filters run as another user and need access.
        std::fs::set_permissions(system.path(""), Permissions::from_mode(0o755)).expect("its own folder");
        Self {
            file,
            system,
            stands_for: Vec::new(),
            left_out: &[],
            before: String::new(),
            every_line: false,
            job_check: None,
        }
    }

    /// Replaces a folder of the host by a folder of the test in this chapter.
    pub fn folder(mut self, of_host: &'static str, name: &str) -> Self {
        let folder = self.system.path(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        self.stands_for.push((of_host, folder.display().to_string()));
        self
    }

    pub fn with(mut self, word: &'static str, other: impl Into<String>) -> Self {
        self.stands_for.push((word, other.into()));
        self
    }

    pub fn without(mut self, left_out: &'static [LeftOut]) -> Self {
        self.left_out = left_out;
        self
    }

    /// Puts a folder with links to the commands of other systems on the path.
    pub fn with_links(mut self) -> Self {
        let links = self.system.path("links").display().to_string();
        self.system.ok(&["install-commands", &links]);
        self.before += &format!("PATH={links}:$PATH; ");
        self
    }

    /// A shell runs this before each command.
    pub fn after(mut self, command: &str) -> Self {
        self.before += &format!("{command}; ");
        self
    }

    /// Compares all lines that the page shows, except `...`.
    pub fn every_line(mut self) -> Self {
        self.every_line = true;
        self
    }

    /// Looks at the output of each job script of the page.
    pub fn checking_jobs(mut self, check: JobCheck) -> Self {
        self.job_check = Some(check);
        self
    }

    fn here(&self, text: &str) -> String {
        self.stands_for.iter().fold(text.to_owned(), |text, (word, other)| text.replace(word, other))
    }

    /// Writes a program that does nothing.
    pub fn program(&self, name: &str) {
        self.script(name, "exit 0");
    }

    /// Writes a program of these lines.
    pub fn script(&self, name: &str, lines: &str) {
        self.system.write(name, &format!("#!/bin/sh\n{lines}\n"));
        std::fs::set_permissions(self.system.path(name), Permissions::from_mode(0o755)).expect("its own file");
    }

    /// Executes the whole chapter.
    pub fn follow(&self) {
        let text = page(self.file);
        for (begin, why) in self.left_out {
            let is_there = text
                .lines()
                .any(|line| line.trim_start().trim_start_matches("$ ").trim_start_matches("# ").starts_with(begin));
            assert!(is_there, "{}: nothing begins with `{begin}`, which is left out: {why}", self.file);
        }
        let blocks = blocks(&text);
        assert!(!blocks.is_empty(), "{} has no blocks", self.file);
        for Block { line, content } in &blocks {
            match content {
                Content::Console(commands) => commands.iter().for_each(|shown| self.compare(shown)),
                Content::Text(language, text) => self.execute(*line, language, text),
            }
        }
    }

    fn execute(&self, line: usize, language: &str, text: &str) {
        let place = format!("{}:{line}", self.file);
        match language {
            "sh" if DIRECTIVES.iter().any(|directive| text.contains(directive)) => self.submit(&place, text),
            "sh" => {
                // A line that opens a loop or a function includes all of its body.
                let opens = |line: &&str| line.ends_with('{') || line.ends_with("do");
                if text.lines().next().filter(opens).is_some_and(|first| self.is_left_out(first)) {
                    return;
                }
                let kept: Vec<&str> = text.lines().filter(|line| !self.is_left_out(line)).collect();
                self.succeeds(&place, &self.here(&kept.join("\n")));
            }
            "bash" => {
                self.system.write("script.sh", text);
                self.succeeds(&place, "muster submit --dry-run script.sh");
            }
            "toml" => {
                self.system.write("block.toml", &self.here(text));
                self.succeeds(&place, "muster config check block.toml");
            }
            "json" => self.read(&place, &self.here(text)),
            "python" => {
                self.system.write("block.py", text);
                self.succeeds(&place, "python3 -m py_compile block.py");
            }
            // Text of a log or a program at some time.
            "text" => {}
            _ => panic!("{place}: nobody knows how to execute {language}"),
        }
    }

    /// Submits a script, and waits for its end.
    fn submit(&self, place: &str, script: &str) {
        self.system.write("block.sh", &self.here(script));
        let submit = match () {
            () if script.contains("\n#PBS ") => "qsub -W block=true -j oe -o block.out block.sh",
            () if script.contains("\n#OAR ") => BY_OARSUB,
            () if script.contains("\n#SBATCH ") => "sbatch --wait -o block.out block.sh",
            () => "muster submit --wait -o block.out block.sh",
        };
        // Some append to it.
        self.succeeds(place, &format!("rm -f block.out; {submit} || {{ cat block.out; exit 1; }}"));
        if let Some(check) = self.job_check {
            check(place, script, &self.system.read("block.out"));
        }
    }

    /// Reads one object, or one on each line. Objects that can be submitted or planned become files for the next commands.
    fn read(&self, place: &str, text: &str) {
        let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
        let values = values.unwrap_or_else(|error| panic!("{place}: {error}"));
        let has = |member: &str| values.iter().any(|value| value.get(member).is_some());
        if has("server") {
            self.system.write("state.json", text);
        } else if has("jobs") {
            self.system.write("job.json", text);
        } else if has("quotas") || has("periodical") {
            self.system.write("block.json", text);
            self.succeeds(place, "muster quota check block.json");
        }
    }

    fn is_left_out(&self, line: &str) -> bool {
        self.left_out.iter().any(|(begin, _)| line.trim_start().starts_with(begin))
    }

    fn shell(&self, script: &str) -> Output {
        self.system.shell(&format!("{}{script}", self.before))
    }

    fn succeeds(&self, place: &str, script: &str) -> Output {
        let output = self.shell(script);
        assert_eq!(output.status, 0, "{place}: {script}\n{output:?}\n{}", self.system.log());
        output
    }

    fn compare(&self, shown: &Shown<'_>) {
        if self.is_left_out(&shown.command) {
            return;
        }
        let place = format!("{}:{}", self.file, shown.line);
        // A stream of events does not end by itself.
        let script = match shown.command.strip_prefix("curl -N ") {
            Some(rest) => self.here(&format!("curl -sN --max-time 2 {rest} || test $? = 28")),
            None => self.here(&shown.command),
        };
        // A file that the page shows is created.
        if let Some(name) = shown.command.strip_prefix("cat ").filter(|name| !self.system.path(name).exists()) {
            return self.system.write(name, &format!("{}\n", shown.output.join("\n")));
        }
        let page: Vec<&str> = shown.output.iter().copied().filter(|line| line.trim() != "...").collect();
        let page = if self.every_line { &page[..] } else { &page[..page.len().min(1)] };
        let seen = self.shell(&script);
        if page.is_empty() {
            assert_eq!(seen.status, 0, "{place}: {script}\n{seen:?}\n{}", self.system.log());
            return;
        }
        let deadline = Instant::now() + LOOKING;
        let (mut seen, looks) = (seen, LOOKS.iter().any(|look| shown.command.starts_with(look)));
        while let Some(missing) = self.missing(page, &seen) {
            let is_late = !looks || Instant::now() > deadline;
            assert!(!is_late, "{place}: {script}\nshows `{missing}`, and here it is\n{seen:?}\n{}", self.system.log());
            std::thread::sleep(Duration::from_millis(20));
            seen = self.shell(&script);
        }
    }

    /// The first line of the page that the output does not have.
    fn missing<'a>(&self, page: &[&'a str], seen: &Output) -> Option<&'a str> {
        let said = format!("{}\n{}", seen.stdout, seen.stderr);
        let is_there = |shown: &&str| said.lines().any(|line| is_alike(shown, &self.here(shown), line));
        page.iter().copied().find(|line| !is_there(line))
    }
}

/// Whether a line matches the line of the page: an object of JSON has the same fields, a table the same headings, a
/// sentence the same words except for numbers, users and what the page cuts short.
fn is_alike(page: &str, here: &str, seen: &str) -> bool {
    if let (Ok(Value::Object(page)), Ok(Value::Object(seen))) = (serde_json::from_str(page), serde_json::from_str(seen))
    {
        let fields = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<BTreeSet<_>>();
        return fields(&page) == fields(&seen);
    }
    let (page, seen) = (words(here), words(seen));
    page.len() == seen.len() && page.iter().zip(&seen).all(|(page, seen)| page == seen || page.contains("..."))
}

fn words(line: &str) -> Vec<String> {
    let user = std::env::var("USER").unwrap_or_default();
    let word = |word: &str| match word {
        "ada" | "root" => "USER".to_owned(),
        _ if word == user => "USER".to_owned(),
        _ => word.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>(),
    };
    line.split_whitespace().map(word).collect()
}

/// A free address for a gateway.
pub fn free_address() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("it is bound").to_string()
}

pub fn started(nodes: u32) -> System {
    let mut system = System::stopped();
    system.restart(&["--nodes", &nodes.to_string(), "--cpus", "2", "--memory", "2G"]);
    system
}

pub const OF_THE_HOST: &str = "it changes users, packages or services of the host";

#[test]
fn the_chapter_for_programmers_is_true() {
    let (mut system, address) = (System::stopped(), free_address());
    system.write("tokens", "the-token-of-the-chapter root\n");
    let closed = Permissions::from_mode(0o600);
    std::fs::set_permissions(system.path("tokens"), closed).expect("its own file");
    let tokens = system.path("tokens").display().to_string();
    system.write("gateway.toml", &format!("[gateway]\nlisten = \"{address}\"\ntokens_file = \"{tokens}\"\n"));
    let config = system.path("gateway.toml").display().to_string();
    system.restart(&["--nodes", "4", "--cpus", "2", "--memory", "2G", "--config", &config]);
    for name in ["job.sh", "simulate.sh", "plot.sh"] {
        system.write(name, "#!/bin/sh\ntrue\n");
    }
    Chapter::new("docs/integrate.md", system)
        .folder("/home/ada", "home")
        .with("127.0.0.1:7457", address)
        .with("$MUSTER_TOKEN", "the-token-of-the-chapter")
        .with("/etc/muster/tokens", tokens)
        .follow();
}

#[test]
fn the_chapter_for_operators_is_true() {
    let system = started(4);
    let mistaken =
        "[cluster]\nname = \"alpha\"\n[[nodes]]\nname = \"n1\"\ncores = 1\n[[queues]]\nname = \"a\"\npriorty = 1\n";
    system.write("muster.toml", mistaken);
    let repository = repository().display().to_string();
    let three = system.path("three").display().to_string();
    let local_cluster = format!("MUSTER_BINARY={} {repository}/ops/local-cluster", env!("CARGO_BIN_EXE_muster"));
    // The page asks three ledgers who leads, when one of them is stopped.
    let ledgers = format!(
        "{local_cluster} start {three} >/dev/null; {local_cluster} kill {three} ledger3 >/dev/null; \
         muster --data {three}/data ledgers; {local_cluster} stop {three} >/dev/null"
    );
    // The chapter restores to a folder with the key, which is not in its backup.
    let backups = system.path("backups").display().to_string();
    std::fs::create_dir(system.path("restored")).expect("a folder");
    std::fs::copy(system.path("data/ledger.key"), system.path("restored/ledger.key")).expect("a key");
    Chapter::new("docs/operate.md", system)
        .folder("/etc/nats", "nats")
        .with("/backup/muster", backups)
        .with("ops/local-cluster", local_cluster)
        .with("/tmp/three", three)
        .with("--data /var/lib/muster", "--data restored")
        .with("ops/nats/", format!("{repository}/ops/nats/"))
        .with("muster ledgers", ledgers)
        .without(&[
            ("ops/prerequisites", "it was run before these tests"),
            ("ops/release", "what is tested was built before"),
            ("install -m 755", OF_THE_HOST),
            ("muster man", OF_THE_HOST),
            ("muster completions", OF_THE_HOST),
            ("getent", OF_THE_HOST),
            ("chown nats", OF_THE_HOST),
        ])
        .follow();
}

#[test]
fn the_chapter_for_administrators_is_true() {
    let repository = repository().display().to_string();
    Chapter::new("docs/administer.md", System::stopped())
        .folder("/etc/nats", "nats")
        .folder("/etc/muster", "etc")
        .with("ops/nats/", format!("{repository}/ops/nats/"))
        .with("/usr/local/bin", "links")
        .with("-o \"$owner\" ", "")
        .without(&[
            ("for host in", "there are no other hosts"),
            ("scp", "there are no other hosts"),
            ("ssh", "there are no other hosts"),
            ("add_node", "there are no other hosts"),
            ("for node in", "there are no other hosts"),
            ("useradd", OF_THE_HOST),
            ("apt", OF_THE_HOST),
            ("getent", OF_THE_HOST),
            ("install -d -o nats", OF_THE_HOST),
            ("install -m 644", OF_THE_HOST),
            ("install -m 600 -o muster", OF_THE_HOST),
            ("echo 'export", OF_THE_HOST),
            ("chown", OF_THE_HOST),
            ("sed -i", "what it changes was not installed"),
            ("systemctl", OF_THE_HOST),
            (
                "muster config check /etc/muster/ledger.toml && systemctl",
                "the file was checked before, and services of the host are left alone",
            ),
            ("nats-server", OF_THE_HOST),
            ("ops/nats/make-passwords /etc/nats && systemctl", OF_THE_HOST),
            ("muster nodes", "no service was started"),
            ("su ", OF_THE_HOST),
        ])
        .follow();
}

#[test]
fn the_chapter_on_filters_is_true() {
    let mut system = System::stopped();
    // The account of the chapter does not exist on every host.
    system.write("filters.toml", "[filter_runner]\naccount = \"nobody\"\n");
    let config = system.path("filters.toml").display().to_string();
    system.restart(&["--nodes", "2", "--cpus", "2", "--memory", "2G", "--config", &config]);
    let repository = repository().display().to_string();
    let chapter = Chapter::new("docs/filters.md", system)
        .folder("/usr/local/libexec/muster", "libexec")
        .with("docs/examples", format!("{repository}/docs/examples"))
        .with("sudo muster filter test", "muster filter test --config filters.toml")
        .with("muster-filter", "nobody")
        .with("job events 17", "job events 1")
        .with_links()
        .without(&[("muster serve", "a second runner needs a bus between processes")]);
    chapter.program("libexec/licence_counter.py");
    chapter.program("libexec/quota");
    chapter.system.submit(&["--", "true"]);
    chapter.follow();
}

#[test]
fn the_chapter_for_users_of_hpc_pack_is_true() {
    let system = started(4);
    for _ in 0..6 {
        system.submit(&["--", "true"]);
    }
    let task = "<Task Type=\"ParametricSweep\" StartValue=\"1\" EndValue=\"3\" CommandLine=\"echo *\"/>";
    system.write("sweep.xml", &format!("<Job><Tasks>{task}</Tasks></Job>"));
    let chapter = Chapter::new("docs/hpcpack.md", system).folder("/opt/site", "site").with("~/bin", "bin").with_links();
    chapter.program("site/quota");
    chapter.program("site/check");
    chapter.follow();
}

#[test]
fn the_chapter_for_users_of_slurm_is_true() {
    let mut system = System::stopped();
    // With the options of the site that the chapter adds.
    let options = "[slurm]\nsite_options = [\"scratch=SIZE scratch space\", \"debug-tools load them\"]\n";
    system.write("filters.toml", &format!("[filter_runner]\naccount = \"nobody\"\n{options}"));
    let config = system.path("filters.toml").display().to_string();
    system.restart(&["--nodes", "4", "--cpus", "2", "--memory", "2G", "--config", &config]);
    let chapter = Chapter::new("docs/slurm.md", system).with_links();
    chapter.program("job.sh");
    chapter.program("solver");
    chapter.program("judge");
    // The answer of the chapter's filter for the second component.
    let judge = "#!/bin/sh\ngrep -q 'MinCores=\"4\"' \"$1\" || exit 0\n\
                 echo 'message=too many tasks' >\"$MUSTER_RESULT_FILE\"\nexit 3\n";
    chapter.system.write("judge", judge);
    let program = chapter.system.path("judge").display().to_string();
    chapter.system.ok(&["cluscfg", "setparams", &format!("SubmissionFilterProgram={program}")]);
    chapter.follow();
}

#[test]
fn the_chapters_on_planning_are_true() {
    Chapter::new("docs/planner.md", System::stopped()).follow();
    Chapter::new("docs/external-planner.md", System::stopped()).follow();
    let chapter = Chapter::new("docs/reference/policy.md", started(1)).every_line();
    let mistaken = "version = 1\nname = \"day\"\n# What is wrong here is told.\n\
                    order = [\"fcfs\", { formula = \"wait / waltime\" }]\n[backfill]\nmode = \"esay\"\n";
    chapter.system.write("day.toml", mistaken);
    chapter.follow();
    Chapter::new("docs/reference/scripts.md", started(2)).follow();
}
