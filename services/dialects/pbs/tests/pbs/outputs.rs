//! The names of output files.

use crate::support::{rules, submission, submission_of, torque};

fn files(line: &str) -> (String, Option<String>) {
    let launch = submission(line).unwrap().spec.components[0].launch.clone();
    (launch.stdout.unwrap(), launch.stderr)
}

fn names(line: &str) -> (String, String) {
    let (stdout, stderr) = files(line);
    (stdout, stderr.unwrap())
}

#[test]
fn output_goes_to_files_with_the_jobs_name_and_number() {
    let pair = |stdout: &str, stderr: &str| (stdout.to_owned(), stderr.to_owned());
    assert_eq!(names(""), pair("/data/run 1/%x.o%A", "/data/run 1/%x.e%A"));
    assert_eq!(names("-J 0-3"), pair("/data/run 1/%x.o%A.%a", "/data/run 1/%x.e%A.%a"));
    let torque = submission_of("-t 0-3", "true\n", &torque()).unwrap().spec.components[0].launch.clone();
    assert_eq!(torque.stdout.as_deref(), Some("/data/run 1/%x.o%A-%a"));
    assert_eq!(names("-o out -e /tmp/err%"), pair("/data/run 1/out", "/tmp/err%%"));
    assert_eq!(names("-o /dev/null -e /dev/null -J 0-3"), pair("/dev/null", "/dev/null"));
    // dask-jobqueue names a folder; so does a path that is one.
    assert_eq!(names("-o /logs/ -e logs"), pair("/logs/%x.o%A", "/data/run 1/logs/%x.e%A"));
    assert_eq!(names("-o login1:/x/out -e :err"), pair("/x/out", "/data/run 1/err"));
    assert_eq!(names("-k o"), pair("/home/ann/%x.o%A", "/data/run 1/%x.e%A"));
    assert_eq!(names("-k oe"), pair("/home/ann/%x.o%A", "/home/ann/%x.e%A"));
    assert_eq!(names("-k oed -o out"), pair("/data/run 1/out", "/data/run 1/%x.e%A"));
}

#[test]
fn both_streams_can_go_to_one_file() {
    assert_eq!(files("-j oe -o out"), ("/data/run 1/out".into(), None));
    assert_eq!(files("-j eo -o out -e err"), ("/data/run 1/err".into(), None));
    assert_eq!(files("-j n").1.as_deref(), Some("/data/run 1/%x.e%A"));
}

#[test]
fn paths_may_have_the_index_and_variables() {
    let stdout = |line: &str| files(line).0;
    assert_eq!(stdout("-J 0-3 -o out.^array_index^"), "/data/run 1/out.%a");
    assert_eq!(stdout("-J 0-3 -o out"), "/data/run 1/out.%a", "the tasks do not write to one file");
    assert_eq!(stdout("-o '$HOME/$PBS_JOBNAME.${PBS_JOBID}'"), "/home/ann/%x.%A.pbs1");
    assert_eq!(stdout("-t 1-2 -o '/x/$PBS_JOBID'"), "/x/%A[%a].pbs1");
    assert_eq!(stdout("-o '/x/$NOSUCH$'"), "/x/$NOSUCH$");
    let _ = rules();
}
