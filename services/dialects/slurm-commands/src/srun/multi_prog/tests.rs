use super::*;

fn sizes(line: &str, variables: &[(&str, &str)]) -> Option<Sizes> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = parse(Command::Srun, &words).unwrap();
    let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Sizes::of(&line, of)
}

/// SL-R-24, SL-R-15: the file counts if no option and no variable gives the number of tasks.
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
