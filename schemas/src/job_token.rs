//! The token with which the processes of a job call a gateway over TCP. It is valid only for that job, while one run
//! lasts.

use crate::{JobId, RunId, ids::IdError};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The beginning of tokens of jobs.
const PREFIX: &str = "job.";

/// The token that a job shows to a gateway: `job.JOB.RUN.PROOF`, with the proof in hexadecimal digits. Only the ledger
/// can make and check a proof.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobToken {
    /// The job, or the task of an array.
    pub job: JobId,
    /// The run during which it is valid.
    pub run: RunId,
    /// Proves that the ledger made it.
    pub proof: [u8; 32],
}

impl fmt::Display for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}.{}.", self.job, self.run)?;
        self.proof.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for JobToken {
    /// A token is a secret and must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}.{}.(secret)", self.job, self.run)
    }
}

impl FromStr for JobToken {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // A text that is not a token may be another secret, so it is not repeated.
        let error = || IdError { text: String::new(), expected: "the token of a job" };
        let mut parts = text.strip_prefix(PREFIX).ok_or_else(error)?.split('.');
        let mut next = || parts.next().ok_or_else(error);
        let (job, run) = (next()?.parse()?, next()?.parse().map_err(|_| error())?);
        let proof = proof(next()?).filter(|_| parts.next().is_none()).ok_or_else(error)?;
        Ok(Self { job, run: RunId(run), proof })
    }
}

fn proof(digits: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let mut bytes = [0; 32];
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

/// How the processes of a job reach a gateway, as far as the ledger knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAccess {
    /// The job's token.
    pub token: JobToken,
    /// The address of a gateway that all nodes can reach, if the site has configured one.
    pub server: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_written_and_read() {
        let token = JobToken { job: JobId { number: 12, index: Some(3) }, run: RunId(45), proof: [0xa7; 32] };
        let text = token.to_string();
        assert_eq!(text, format!("job.12_3.45.{}", "a7".repeat(32)));
        assert_eq!(text.parse::<JobToken>().unwrap(), token);
        assert!(!format!("{token:?}").contains("a7a7"), "it is a secret");
        let proof = "a7".repeat(32);
        for bad in [
            String::new(),
            "job.".to_owned(),
            format!("job.12.{proof}"),
            format!("job.0.1.{proof}"),
            format!("job.12.x.{proof}"),
            format!("job.12.1.{proof}."),
            format!("job.12.1.{proof}0"),
            format!("job.12.1.{}", &proof[1..]),
            format!("job.12.1.{}", "zz".repeat(32)),
            format!("jobs.12.1.{proof}"),
        ] {
            assert!(bad.parse::<JobToken>().is_err(), "`{bad}`");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_reading_panic(text: String) {
            let _ = (text.parse::<JobToken>(), format!("{PREFIX}{text}").parse::<JobToken>());
        }
    }
}
