use super::*;

fn sizes(line: &str, variables: &[(&str, &str)]) -> Option<Sizes> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = parse(COMMAND, &words).unwrap();
    let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Sizes::of(&line, of)
}

/// SL-R-24: each task has one record, and each record a task.
#[test]
fn each_task_has_one_record() {
    assert_eq!(tasks_of("# 9 none\n\n0 a\n1-2,3 b\n", Some(4)), Ok(4));
    assert_eq!(tasks_of("5 a\n", Some(2)), Err(Fault::Beyond { line: 1, rank: 5 }));
    assert_eq!(tasks_of("0 a\n1-4 a\n", Some(2)), Err(Fault::Beyond { line: 2, rank: 4 }));
    assert_eq!(tasks_of("0 a\n\n0 b\n", Some(1)), Err(Fault::Duplicate { line: 3, rank: 0 }));
    assert_eq!(tasks_of("3 a\n0-4 b\n", None), Err(Fault::Duplicate { line: 2, rank: 3 }));
    assert_eq!(tasks_of("0,0 a\n", Some(1)), Err(Fault::Duplicate { line: 1, rank: 0 }));
    assert_eq!(tasks_of("0 a\n2 b\n", Some(3)), Err(Fault::NoRecord { rank: 1 }));
    assert_eq!(tasks_of("0 a\n* b\n", Some(3)), Ok(3));
    assert_eq!(tasks_of("", Some(1)), Err(Fault::NoRecord { rank: 0 }));
}

/// SL-R-24: without a number of tasks there are as many as the file has ranks for.
#[test]
fn a_file_tells_how_many_tasks_there_are() {
    assert_eq!(tasks_of("0 a\n1-3 b\n", None), Ok(4));
    assert_eq!(tasks_of("0-1 a\n* b\n", None), Ok(2));
    assert_eq!(tasks_of("* a\n", None), Ok(1));
    assert_eq!(tasks_of("2 a\n", None), Err(Fault::NoRecord { rank: 0 }));
    assert_eq!(tasks_of("0-4294967295 a\n", None), Ok(u32::MAX));
}

/// SL-R-24: a backslash at the end of a line continues it, and the numbers of lines stay those of the file.
#[test]
fn lines_are_continued() {
    assert_eq!(joined("0 a \\\n b \\\n c\n1 d"), "0 a  b  c\n\n\n1 d\n");
    assert_eq!(tasks_of(&joined("0 a \\\n1 b\n0 c\n"), None), Err(Fault::Duplicate { line: 3, rank: 0 }));
    assert_eq!(joined("0 a\\"), "0 a");
}

/// SL-R-24: the words for what is wrong.
#[test]
fn faults_are_told_in_slurm_s_words() {
    let said = |fault: Fault| fault.failure("ranks").lines.join("\n");
    let line = "srun: error: Line 1 of configuration file ranks invalid";
    assert_eq!(said(Fault::Beyond { line: 1, rank: 5 }), format!("srun: error: Invalid task id, 5 >= ntasks\n{line}"));
    assert_eq!(
        said(Fault::Duplicate { line: 1, rank: 0 }),
        format!("srun: error: Duplicate record for task 0\n{line}")
    );
    let none = "srun: error: Configuration file ranks invalid, no record for task id 1";
    assert_eq!(said(Fault::NoRecord { rank: 1 }), none);
}

/// SL-R-24, SL-R-15: the file counts where no option and no variable gives a number of tasks.
#[test]
fn options_go_before_the_file() {
    assert_eq!(sizes("true", &[]), None);
    assert_eq!(sizes("--multi-prog f", &[]), Some(Sizes::OfFile));
    assert_eq!(sizes("f", &[("SLURM_MULTI_PROG", "1")]), Some(Sizes::OfFile));
    assert_eq!(sizes("-N2 --multi-prog f", &[]), Some(Sizes::OfFile));
    assert_eq!(sizes("-n3 --multi-prog f", &[("SLURM_NTASKS", "4")]), Some(Sizes::Tasks(3)));
    assert_eq!(sizes("-N2 --ntasks-per-node=2 --multi-prog f", &[]), Some(Sizes::Tasks(4)));
    assert_eq!(sizes("--ntasks-per-node=2 --multi-prog f", &[]), Some(Sizes::OfNodes));
    let job = [("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4")];
    assert_eq!(sizes("--multi-prog f", &job), Some(Sizes::Tasks(4)));
    assert_eq!(sizes("--jobid=7 --multi-prog f", &job), Some(Sizes::Tasks(4)));
    assert_eq!(sizes("--jobid=8 --multi-prog f", &job), Some(Sizes::OfFile));
    let several = [("SLURM_HET_SIZE", "2"), ("SLURM_NTASKS", "4"), ("SLURM_NTASKS_HET_GROUP_1", "2")];
    assert_eq!(sizes("--het-group=1 --multi-prog f", &several), Some(Sizes::Tasks(2)));
    assert_eq!(sizes("--het-group=0,1 --multi-prog f", &several), None);
    assert_eq!(sizes("--multi-prog f : --multi-prog f", &[]), None);
}
