//! `muster simulate` from the outside: its output, its files and its refusals.

use serde_json::Value;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

const EXAMPLE: &str = include_str!("../../../tests/data/worked_example.swf");

const ROWS_UNDER_EASY: &str = "\
job_id,submit,start,end,procs,wait,bounded_slowdown
1,0,0,15,8,0,1.0000
2,5,15,55,7,10,1.2500
3,15,55,95,9,40,2.0000
4,25,95,115,4,70,4.5000
5,30,140,141,9,110,11.1000
6,30,30,55,1,0,1.0000
7,40,95,110,3,55,4.6667
8,40,40,120,1,0,1.0000
9,50,110,140,4,60,3.0000
10,55,141,166,6,86,4.4400
";

struct Folder(tempfile::TempDir);

struct Output {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Folder {
    /// With the worked example in `example.swf`.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write("example.swf", EXAMPLE);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("the file can be written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    /// Runs `muster simulate` with these words.
    fn simulate(&self, line: &str) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_muster"))
            .arg("simulate")
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("MUSTER_DATA")
            .stdin(Stdio::null())
            .output()
            .expect("muster starts");
        Output {
            status: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("it prints text"),
            stderr: String::from_utf8(output.stderr).expect("it prints text"),
        }
    }

    /// The JSON of a successful run.
    fn json(&self, line: &str) -> Value {
        let output = self.simulate(&format!("{line} --json"));
        assert_eq!((output.status, &*output.stderr), (0, ""), "{line}");
        assert_eq!(output.stdout.lines().count(), 1, "{}", output.stdout);
        serde_json::from_str(&output.stdout).expect("it is JSON")
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.0.path()).expect("the folder is there").count()
    }
}

#[test]
fn rows_go_to_a_file_or_to_standard_output() {
    let folder = Folder::new();
    let output = folder.simulate("example.swf --policy easy --out rows.csv");
    assert_eq!((output.status, &*output.stderr), (0, ""));
    assert_eq!(folder.read("rows.csv"), ROWS_UNDER_EASY);
    assert!(
        output.stdout.contains("mean 43.1 s, median 55 s, 95th percentile 1:50 (110 s), most 1:50 (110 s)"),
        "{}",
        output.stdout
    );
    let output = folder.simulate("example.swf --policy easy --out - --json");
    assert_eq!((output.status, &*output.stdout), (0, ROWS_UNDER_EASY));
    let summary: Value = serde_json::from_str(&output.stderr).expect("the summary is on standard error");
    assert_eq!(summary["jobs"], 10);
}

/// Summary and rows have the documented keys and forms (M-SIM-5).
#[test]
fn the_summary_has_the_documented_keys() {
    let folder = Folder::new();
    let summary = folder.json("example.swf --policy easy");
    assert_eq!(summary["policy"], "easy");
    assert_eq!((&summary["procs"], &summary["jobs"]), (&10.into(), &10.into()));
    let dropped = serde_json::json!({
        "malformed": 0, "partial": 0, "runtime": 1, "submit": 0, "procs": 0, "size": 1
    });
    assert_eq!(summary["dropped"], dropped);
    assert_eq!((&summary["mean_wait"], &summary["median_wait"]), (&43.1.into(), &55.into()));
    assert_eq!((&summary["p95_wait"], &summary["max_wait"]), (&110.into(), &110.into()));
    assert_eq!(format!("{:.6}", summary["mean_bsld"].as_f64().expect("a number")), "3.395667");
    assert_eq!((&summary["max_bsld"], &summary["makespan"]), (&11.1.into(), &166.into()));
    assert_eq!(format!("{:.6}", summary["utilization"].as_f64().expect("a number")), "0.764458");
}

#[test]
fn a_window_is_cut_out_of_the_accepted_jobs() {
    let folder = Folder::new();
    let output = folder.simulate("example.swf --policy fcfs --skip 8 --limit 1 --out -");
    assert_eq!(output.stdout.lines().nth(1), Some("9,50,50,80,4,0,1.0000"));
    assert_eq!(output.stdout.lines().count(), 2);
    let nothing = folder.json("example.swf --policy fcfs --skip 100");
    assert_eq!(
        (&nothing["jobs"], &nothing["mean_wait"], &nothing["utilization"]),
        (&0.into(), &0.0.into(), &0.0.into())
    );
}

#[test]
fn a_packed_trace_is_told_by_its_content() {
    let folder = Folder::new();
    let packed = Command::new("gzip").args(["-kc", "example.swf"]).current_dir(folder.0.path()).output().expect("gzip");
    folder.write("packed.swf", &packed.stdout);
    assert_eq!(folder.simulate("packed.swf --policy easy --out -").stdout, ROWS_UNDER_EASY);
    folder.write("cut.swf.gz", &packed.stdout[..packed.stdout.len() / 2]);
    let output = folder.simulate("cut.swf.gz --policy easy");
    assert_eq!((output.status, &*output.stdout), (1, ""));
    assert!(output.stderr.starts_with("muster: cut.swf.gz: "), "{}", output.stderr);
}

#[test]
fn the_size_of_the_machine_is_needed() {
    let folder = Folder::new();
    folder.write("unknown.swf", "; Computer: none\n1 0 -1 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n");
    let output = folder.simulate("unknown.swf --policy easy");
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("unknown.swf") && output.stderr.contains("--procs"), "{}", output.stderr);
    assert_eq!(folder.json("unknown.swf --policy easy --procs 100000")["procs"], 100_000);
    for procs in ["0", "-1", "many"] {
        assert_eq!(folder.simulate(&format!("unknown.swf --policy easy --procs {procs}")).status, 2, "{procs}");
    }
    let output = folder.simulate("unknown.swf --policy easy --procs 9000000000");
    assert_eq!(output.status, 2, "{}", output.stderr);
}

/// A trace is read by the rules; every kind of damage is counted (M-SIM-1).
#[test]
fn lines_of_every_kind_of_damage_are_counted() {
    let folder = Folder::new();
    let odd: [&[u8]; 14] = [
        b"; MaxProcs: 10",
        b"1 2 3",
        b"",
        b"\t  \r",
        b"a b c d e f g h i j k l m n o p q r",
        b"1 0 -1 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1 extra",
        b"1 0 -1 NaN 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1",
        b"1 0 -1 inf 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1",
        b"1 0 -1 5 1 -1 -1 1 5 -1 3 1 1 1 1 1 -1 -1",
        b"1 -1 -1 -1 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1",
        b"1 -1 -1 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1",
        b"1 0 -1 5 0 -1 -1 -1 5 -1 1 1 1 1 1 1 -1 -1",
        b"1 0 -1 5 1 -1 -1 99999999999999999999 5 -1 1 1 1 1 1 1 -1 -1",
        b"\xff\xfe\x00 0 -1 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1",
    ];
    folder.write("odd.swf", odd.join(&b'\n'));
    let summary = folder.json("odd.swf --policy conservative");
    let dropped = serde_json::json!({
        "malformed": 6, "partial": 1, "runtime": 1, "submit": 1, "procs": 1, "size": 1
    });
    assert_eq!((&summary["dropped"], &summary["jobs"]), (&dropped, &0.into()));
}

#[test]
fn what_is_no_trace_gives_an_error_or_counts() {
    let folder = Folder::new();
    folder.write("empty.swf", "");
    folder.write("random.swf", (0..20_000u32).map(|byte| ((byte * 7919) >> 3) as u8).collect::<Vec<_>>());
    assert_eq!(folder.json("empty.swf --policy easy --procs 4")["jobs"], 0);
    assert_eq!(folder.json("random.swf --policy easy --procs 4")["jobs"], 0);
    assert_eq!(folder.simulate("nowhere.swf --policy easy").status, 1);
    assert_eq!(folder.simulate(". --policy easy").status, 1);
    assert_eq!(folder.simulate("example.swf").status, 2);
    assert_eq!(folder.simulate("--policy easy").status, 2);
}

#[test]
fn walltimes_of_a_century_are_simulated_and_endless_ones_told() {
    let folder = Folder::new();
    let line = |runtime: &str, estimate: &str| format!("7 0 -1 {runtime} 1 -1 -1 1 {estimate} -1 1 1 1 1 1 1 -1 -1\n");
    folder.write("century.swf", line("3155760000", "3155760000").repeat(3));
    for policy in ["fcfs", "easy", "conservative", "wfp3"] {
        let summary = folder.json(&format!("century.swf --policy {policy} --procs 1"));
        assert_eq!(summary["makespan"], 3 * 3_155_760_000_u64, "{policy}");
    }
    folder.write("endless.swf", line("1e18", "1e18"));
    let output = folder.simulate("endless.swf --policy easy --procs 1");
    assert_eq!(output.status, 1);
    assert!(output.stderr.starts_with("muster: job 7: time "), "{}", output.stderr);
}

#[test]
fn a_policy_file_with_an_error_is_told_with_its_place_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("wrong.toml", "version = 1\n[backfill]\nmode = \"esay\"\n");
    let output = folder.simulate("example.swf --policy wrong.toml --out rows.csv --svg chart.svg");
    assert_eq!((output.status, &*output.stdout), (2, ""));
    assert!(output.stderr.starts_with("wrong.toml:3:8: "), "{}", output.stderr);
    assert_eq!(folder.simulate("example.swf --policy esay").status, 4);
    assert_eq!(folder.simulate("example.swf --policy easy --out nowhere/rows.csv").status, 1);
    assert_eq!(folder.files(), 2);
}

#[test]
fn a_file_that_says_what_a_built_in_policy_says_gives_the_same_bytes() {
    let folder = Folder::new();
    folder.write("mine.toml", "version = 1\nname = \"conservative\"\n[backfill]\nmode = \"conservative\"\n");
    let file = folder.simulate("example.swf --policy mine.toml --out - --json");
    let built_in = folder.simulate("example.swf --policy conservative --out - --json");
    assert_eq!((file.stdout, file.stderr), (built_in.stdout, built_in.stderr));
}

#[test]
fn policies_are_compared_side_by_side() {
    let folder = Folder::new();
    let output = folder.simulate("example.swf --compare fcfs easy conservative spt");
    assert_eq!((output.status, &*output.stderr), (0, ""));
    let rows: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..3], ["fcfs", "1:00", "1:16"]);
    assert_eq!((rows[2][0], rows[3][0], rows[4][0]), ("easy", "conservative", "spt"));
    let summaries = folder.json("example.swf --compare fcfs easy");
    assert_eq!((&summaries[0]["makespan"], &summaries[1]["makespan"]), (&196.into(), &166.into()));
    let with_policy = folder.json("example.swf --policy conservative --compare fcfs");
    assert_eq!((&with_policy[0]["policy"], &with_policy[1]["policy"]), (&"conservative".into(), &"fcfs".into()));
    assert_eq!(folder.simulate("example.swf --compare fcfs easy --out rows.csv").status, 2);
}

#[test]
fn a_cluster_has_nodes_instead_of_a_pool() {
    let folder = Folder::new();
    folder.write("cluster.toml", "[[nodes]]\nname = \"n[1-5]\"\ncores = 2\nmemory = \"4G\"\n");
    let output = folder.simulate("example.swf --policy easy --cluster cluster.toml --out -");
    assert_eq!((output.status, &*output.stdout), (0, ROWS_UNDER_EASY), "{}", output.stderr);
    folder.write("small.toml", "[[nodes]]\nname = \"n1\"\ncores = 8\nmemory = \"4G\"\n");
    let summary = folder.json("example.swf --policy easy --cluster small.toml");
    assert_eq!((&summary["procs"], &summary["jobs"], &summary["dropped"]["size"]), (&8.into(), &8.into(), &3.into()));
    folder.write("none.toml", "[cluster]\nname = \"nothing\"\n");
    let output = folder.simulate("example.swf --policy easy --cluster none.toml");
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("[[nodes]]"), "{}", output.stderr);
    assert_eq!(folder.simulate("example.swf --policy easy --cluster cluster.toml --procs 4").status, 2);
}

#[test]
fn jobs_that_never_start_are_told() {
    let folder = Folder::new();
    folder.write("small.toml", "version = 1\n[[limit]]\nper = \"user\"\nmax_cores = 7\n");
    let output = folder.simulate("example.swf --policy small.toml --out - --json");
    assert_eq!(output.status, 0);
    assert!(output.stderr.contains("\"never_started\":3"), "{}", output.stderr);
    assert!(output.stderr.contains("some jobs never start, first job 1: "), "{}", output.stderr);
    assert_eq!(output.stdout.lines().count(), 8);
}

#[test]
fn charts_are_drawn_as_svg_and_png() {
    let folder = Folder::new();
    let output = folder.simulate("example.swf --policy easy --svg chart.svg --png chart.png");
    assert_eq!(output.status, 0, "{}", output.stderr);
    let svg = folder.read("chart.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("Simulation of example.swf") && svg.ends_with("</svg>\n"));
    let png = std::fs::read(folder.path("chart.png")).expect("the file is there");
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    // The header has twice the size of the SVG.
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(16), number(20)), (1920, 1800));
    assert_eq!(folder.simulate("example.swf --compare easy fcfs --svg both.svg").status, 0);
    assert!(folder.read("both.svg").contains("fcfs: jobs waiting"));
}
