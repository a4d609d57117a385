//! `#PBS` and `#BSUB` lines of batch scripts.

use super::submissions::now;
use muster_slurm::{
    messages::{ExitStatuses, Refusal},
    options::{Command, Given},
    script::{ScriptOptions, options},
};
use proptest::prelude::*;

fn read(lines: &str) -> Result<ScriptOptions, Refusal> {
    let text = format!("#!/bin/sh\n{lines}\ndate\n");
    options(&text)?.with_foreign_lines(&text)
}

/// The options of the only component, each as `name=value`.
fn translated(lines: &str) -> String {
    let read = read(lines).unwrap_or_else(|refusal| panic!("{lines}: {:?}", refusal.lines(Command::Sbatch)));
    let shown = |given: &Given| match given.text() {
        "" => given.option.name.to_owned(),
        value => format!("{}={value}", given.option.name),
    };
    assert!(read.sections[0].iter().all(|given| given.check(&now()).is_ok()), "{lines}");
    read.sections[0].iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// SL-C-16
#[test]
fn lines_for_pbs_are_translated() {
    for (lines, asked) in [
        ("#PBS -l nodes=2:ppn=4,walltime=01:00:00", "nodes=2 ntasks=8 time=01:00:00"),
        ("#PBS -l nodes=n1:ppn=2+n2:ppn=3", "ntasks=5 nodelist=n1,n2"),
        ("#PBS -l select=2:ncpus=8:mpiprocs=4:mem=10gb", "nodes=2 mincpus=8 ntasks-per-node=4 mem=10g cpus-per-task=2"),
        ("#PBS -l select=1:ncpus=4:mpiprocs=4", "nodes=1 mincpus=4 ntasks-per-node=4"),
        ("#PBS -l naccelerators=2 -l accelerator=True", "gres=gpu:2 gres=gpu:1"),
        ("#PBS -l cput=30:00 -l nice=5 -l proc=gamma -l file=2gb", "time=30:00 nice=5 constraint=gamma tmp=2g"),
        (
            "#PBS -N name -A acct -q p2 -o out -e none",
            "job-name=name account=acct partition=p2 output=out error=/dev/null",
        ),
        ("#PBS -h -p 7 -J 1-5 -t 2", "hold nice=7 array=1-5 array=2"),
        ("#PBS -m abe -M ann@example.org -m n", "mail-type=BEGIN,END,FAIL mail-user=ann@example.org mail-type=NONE"),
        ("#PBS -v A=1\n#PBS -V -j oe\n#PBS -v B", "export=A=1,B"),
        ("#PBS -W depend=afterok:12 -a 16:00", "dependency=afterok:12 begin=16:00"),
        // They come after the lines for Slurm, and stand below the first command too.
        ("#PBS -q p2\n#SBATCH -p p1 -n2\ncd /tmp\n#PBS -N late", "partition=p1 ntasks=2 partition=p2 job-name=late"),
    ] {
        assert_eq!(translated(lines), asked, "{lines}");
    }
    assert_eq!(read("#PBS -W umask=027").map(|read| read.umask), Ok(Some(0o27)));
    let sections = read("#SBATCH -n1\n#SBATCH hetjob\n#PBS -q p2").unwrap().sections;
    assert!(sections.iter().all(|section| section.iter().any(|given| given.text() == "p2")));
}

/// SL-C-16
#[test]
fn lines_for_lsf_are_translated() {
    for (lines, asked) in [
        ("#BSUB -J name -q p2 -n 4 -W 90", "job-name=name partition=p2 ntasks=4 time=90"),
        ("#BSUB -n 2,6\n#BSUB -W 1:30/host -x", "ntasks=6 time=90 exclusive"),
        ("#BSUB -m \"n1 n2\" -M 200MB -o out -e err", "nodelist=n1,n2 mem-per-cpu=200 output=out error=err"),
        ("#BSUB -cwd /tmp\n#PBS -q p9", "chdir=/tmp"),
    ] {
        assert_eq!(translated(lines), asked, "{lines}");
    }
}

/// SL-C-16: nothing is ignored without a word.
#[test]
fn what_is_not_translated_is_told() {
    let warnings = |lines: &str| read(lines).unwrap().warnings.join("\n");
    assert_eq!(warnings("#PBS -l nodes=1 -V -j oe"), "");
    assert_eq!(warnings("#PBS -k oe"), "#PBS -k oe has no meaning here and is ignored");
    assert_eq!(warnings("#PBS -l pvmem=1gb"), "#PBS -l pvmem=1gb has no meaning here and is ignored");
    assert_eq!(warnings("#PBS -W group_list=x"), "#PBS -W group_list=x has no meaning here and is ignored");
    assert_eq!(warnings("#PBS -W umask=999"), "Invalid umask ignored");
    let others = warnings("#BSUB -x\n#PBS -h\n#OAR -l nodes=1\n#$ -cwd");
    assert_eq!(others.lines().count(), 3, "{others}");
    assert!(others.contains("#PBS are ignored") && others.contains("#OAR") && others.contains("#$"), "{others}");
    assert_eq!(warnings("#PBSPRO -Z\n#comment"), "");
}

/// SL-C-16
#[test]
fn lines_that_the_other_scheduler_does_not_know_are_refused() {
    let told = |lines: &str| {
        let refusal = read(lines).unwrap_err();
        (refusal.exit_status(ExitStatuses::default()), refusal.lines(Command::Sbatch))
    };
    let unknown = told("#BSUB -R span[ptile=4]");
    let lines = ["sbatch: invalid option -- 'R'", "sbatch: error: Unrecognized command line parameter ?"];
    assert_eq!(unknown, (1, lines.map(str::to_owned).to_vec()));
    assert_eq!(told("#PBS what").1, ["sbatch: error: Invalid argument: what"]);
    assert_eq!(told("#PBS -m x").1, ["sbatch: error: -m=x invalid"]);
    assert_eq!(told("#BSUB -n 2,").1, ["sbatch: error: #BSUB -n format not correct given: '2,'"]);
    assert_eq!(told("#PBS -l select=two").1, ["sbatch: error: Invalid --nodes specification"]);
    assert_eq!(read("#PBS -N \"x").unwrap_err(), Refusal::UnmatchedQuote { line: 2, quote: '"' });
}

proptest! {
    #[test]
    fn any_foreign_lines_are_read_or_refused(text in "((#PBS|#BSUB|date)[ a-zA-Z0-9\"'\\\\=:,+#-]{0,24}\n){0,8}") {
        let _ = read(&text);
    }
}
