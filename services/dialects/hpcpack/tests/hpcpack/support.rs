//! Shared by several tests.

use muster_hpcpack::{
    codes::{Code, Warning},
    description::{DescriptionError, JobDescription},
};

/// The description of valid job XML without warnings.
pub fn read(xml: &str) -> JobDescription {
    let (description, warnings) = JobDescription::read(xml.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    assert_eq!(warnings, [], "{xml}");
    description
}

/// The refusal of invalid job XML.
pub fn refusal(xml: &str) -> DescriptionError {
    match JobDescription::read(xml.as_bytes()) {
        Err(error) => error,
        Ok((description, _)) => panic!("taken: {description:?}"),
    }
}

/// A job with these attributes and no tasks.
pub fn job(attributes: &str) -> JobDescription {
    read(&format!("<Job {attributes}/>"))
}

/// A job with these tasks.
pub fn job_with_tasks(attributes: &str, tasks: &str) -> JobDescription {
    read(&format!("<Job {attributes}><Tasks>{tasks}</Tasks></Job>"))
}

/// The codes of warnings.
pub fn codes(warnings: &[Warning]) -> Vec<Code> {
    warnings.iter().map(|warning| warning.code).collect()
}
