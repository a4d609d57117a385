//! The output files of jobs.

use muster_schemas::{
    output::{as_file_name, default_pattern, expand, of_job},
    views::JobDetail,
};
use std::path::Path;

/// Which of a job's two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// The file that a job writes to, as its first task sees it; before the job has run, as far as that is known. `None`
/// for errors that go to the same file as the output, and for a job without a program.
pub fn path(detail: &JobDetail, stream: Stream) -> Option<String> {
    let JobDetail { job, spec, runs, .. } = detail;
    let launch = &spec.components.first()?.launch;
    let pattern = match stream {
        Stream::Output if launch.program == muster_schemas::job::Program::None => return launch.stdout.clone(),
        Stream::Output => launch.stdout.as_deref().unwrap_or_else(|| match &job.array {
            // Each task has a file of its own.
            Some(_) => "muster-%A_%a.out",
            None => default_pattern(job.id),
        }),
        Stream::Errors => launch.stderr.as_deref()?,
    };
    let run = runs.last();
    let node = run.and_then(|run| run.nodes.first()).map(|part| part.node.as_str());
    let meaning = |symbol| match symbol {
        'j' | 'a' | 'b' | 'J' if job.array.is_some() => None,
        'J' => Some(job.own_number().to_string()),
        'N' => node.map(as_file_name),
        't' => run.map(|_| "0".to_owned()),
        'r' => run.map(|_| (runs.len() - 1).to_string()),
        _ => of_job(symbol, job.id, &job.name, &job.owner),
    };
    let name = expand(pattern, meaning);
    Some(Path::new(&spec.working_directory).join(name).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tests::job;
    use muster_schemas::{
        JobId,
        job::{Component, JobSpec, Launch, Program},
        views::{ArrayView, JobView},
    };

    fn detail(job: JobView, output: Option<&str>, errors: Option<&str>) -> JobDetail {
        let launch = Launch {
            program: Program::Tasks { argv: vec!["true".into()] },
            stdout: output.map(str::to_owned),
            stderr: errors.map(str::to_owned),
            ..Launch::default()
        };
        let components = vec![Component { launch, ..Component::default() }];
        let spec = JobSpec { components, working_directory: "/home/anna".into(), ..JobSpec::default() };
        JobDetail {
            job,
            spec,
            redacted: false,
            runs: Vec::new(),
            tasks: Vec::new(),
            cancels: Vec::new(),
            dependencies: Vec::new(),
            increase: None,
            use_share_millionths: None,
        }
    }

    #[test]
    fn the_files_of_a_job_have_their_whole_names() {
        let named = |job: JobView, output, errors| {
            let detail = detail(job, output, errors);
            (path(&detail, Stream::Output).unwrap_or_default(), path(&detail, Stream::Errors))
        };
        assert_eq!(named(job(7), None, None), ("/home/anna/muster-7.out".into(), None));
        let (output, errors) = named(job(7), Some("%x-%j.out"), Some("/tmp/%u.%t"));
        assert_eq!((output.as_str(), errors.as_deref()), ("/home/anna/relax-7.out", Some("/tmp/anna.%t")));
        let task = JobView { id: JobId::task(7, 3), ..job(7) };
        assert_eq!(named(task, None, None).0, "/home/anna/muster-7_3.out");
        let array = JobView { array: Some(ArrayView::default()), ..job(7) };
        assert_eq!(named(array, None, None).0, "/home/anna/muster-7_%a.out");
    }
}
