//! Section 6 of the specification: whole traces of real machines, which are not part of the repository.

use super::common::{built_in, csv, run_trace};
use muster_swf::{Dropped, Trace};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// Trace, policy, jobs, mean wait, max wait, mean bounded slowdown, makespan, utilization, start of the SHA-256 of the CSV.
type Row = (&'static str, &'static str, u64, &'static str, i64, &'static str, i64, &'static str, &'static str);

const CTC: &str = "CTC-SP2-1996-3.1-cln";
const HPC2N: &str = "HPC2N-2002-2.2-cln";
const THUNDER: &str = "LLNL-Thunder-2007-1.1-cln";
const GAIA: &str = "UniLu-Gaia-2014-1";
const LUBLIN: &str = "lublin_256";

#[rustfmt::skip]
const TABLE: [Row; 15] = [
    (CTC, "fcfs", 77222, "767858.090", 1915362, "4275.1703", 30919043, "0.797545", "0f89cc0f72e4372c"),
    (CTC, "easy", 77222, "14989.564", 324009, "51.8068", 29306751, "0.841421", "8c03a71791728ef5"),
    (CTC, "conservative", 77222, "17947.425", 424474, "56.3325", 29306751, "0.841421", "774c8844a6b5ae8d"),
    (HPC2N, "fcfs", 202871, "16189.149", 1163459, "207.8084", 109256855, "0.595528", "f6b5234929bb4f86"),
    (HPC2N, "easy", 202871, "10800.027", 1163514, "87.1039", 109256855, "0.595528", "8b91e34abd9d55b5"),
    (HPC2N, "conservative", 202871, "10998.218", 1298606, "86.6665", 109256855, "0.595528", "bd1259db5a70f4be"),
    (THUNDER, "fcfs", 118791, "8445.002", 88364, "276.9715", 12976994, "0.863566", "ccb332577d0c5552"),
    (THUNDER, "easy", 118791, "304.891", 88489, "4.4600", 12976994, "0.863566", "4e770e85fd9829ad"),
    (THUNDER, "conservative", 118791, "687.479", 85182, "20.7005", 12976994, "0.863566", "eca418a38a1b9d49"),
    (GAIA, "fcfs", 51860, "445.952", 27977, "3.1073", 7697292, "0.452376", "257e977303bae57c"),
    (GAIA, "easy", 51860, "188.959", 28045, "1.6206", 7697292, "0.452376", "b6f4bfeec7ea66a9"),
    (GAIA, "conservative", 51860, "263.960", 28045, "2.0629", 7697292, "0.452376", "0c420466bf512281"),
    (LUBLIN, "fcfs", 10000, "2388443.760", 4759976, "66502.4755", 12482549, "0.654908", "5b898b3efb518591"),
    (LUBLIN, "easy", 10000, "97155.995", 1029731, "590.0538", 8730698, "0.936343", "a03120759a2de861"),
    (LUBLIN, "conservative", 10000, "131567.509", 994667, "489.2013", 8729497, "0.936472", "61071328a0feecfa"),
];

/// `MUSTER_TRACES`, else the folder beside the repository on developers' machines.
fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("MUSTER_TRACES").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    muster_surroundings::skipped(&format!("{} has no traces; name their folder in MUSTER_TRACES", folder.display()));
    None
}

fn check(name: &str, dropped: Dropped) {
    let Some(folder) = folder() else { return };
    let path = folder.join(format!("{name}.swf.gz"));
    let trace = Trace::open(&path, None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trace.dropped, dropped, "{name}");
    for row in TABLE.iter().filter(|row| row.0 == name) {
        let simulation = run_trace(&trace, &built_in(row.1));
        let summary = simulation.summary(trace.dropped);
        let digest = Sha256::digest(csv(&simulation).as_bytes());
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let mean_wait = format!("{:.3}", summary.mean_wait);
        let mean_slowdown = format!("{:.4}", summary.mean_bsld);
        let utilization = format!("{:.6}", summary.utilization);
        let found = (
            (summary.jobs, mean_wait.as_str(), summary.max_wait),
            (mean_slowdown.as_str(), summary.makespan, utilization.as_str()),
            digest.as_str(),
        );
        let expected = ((row.2, row.3, row.4), (row.5, row.6, row.7), row.8);
        assert_eq!(found, expected, "{name} under {}", row.1);
    }
}

/// The rows of the whole-trace table, CTC SP2 (M-SIM-7).
#[test]
fn ctc_sp2_gives_the_rows_of_the_specification() {
    check(CTC, Dropped::default());
}

/// The same, HPC2N (M-SIM-8).
#[test]
fn hpc2n_gives_the_rows_of_the_specification() {
    check(HPC2N, Dropped::default());
}

/// The same, LLNL Thunder (M-SIM-9).
#[test]
fn thunder_gives_the_rows_of_the_specification() {
    check(THUNDER, Dropped { runtime: 1190, procs: 1058, ..Dropped::default() });
}

/// The same, Gaia (M-SIM-10).
#[test]
fn gaia_gives_the_rows_of_the_specification() {
    check(GAIA, Dropped { partial: 127, ..Dropped::default() });
}

/// The same, lublin_256 (M-SIM-11).
#[test]
fn lublin_gives_the_rows_of_the_specification() {
    check(LUBLIN, Dropped::default());
}
