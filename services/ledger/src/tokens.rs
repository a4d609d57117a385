//! Tokens of jobs: how the ledger makes and recognises them.

use crate::signing::Signer;
use muster_schemas::{
    JobId, RunId,
    job_token::{JobAccess, JobToken},
    node::NodeOrder,
};

/// The purpose of the tokens' key; no other use of the ledger's key has this text.
const KEY_CONTEXT: &str = "muster 2026-11-24 tokens of jobs";

/// Makes tokens of jobs. The same run always has the same token, so that an order can be repeated.
pub(crate) struct JobTokens {
    key: [u8; blake3::KEY_LEN],
    server: Option<String>,
}

impl JobTokens {
    /// The tokens of a ledger with this key, whose jobs call the gateway at `server` if the site has named one.
    pub(crate) fn new(signer: &Signer, server: Option<String>) -> Self {
        Self { key: signer.derived_key(KEY_CONTEXT), server }
    }

    fn proof(&self, job: JobId, run: RunId) -> blake3::Hash {
        let mut text = Vec::with_capacity(24);
        text.extend(job.number.to_le_bytes());
        // An index has 32 bits, so no two jobs have the same text.
        text.extend(job.index.map_or(u64::MAX, u64::from).to_le_bytes());
        text.extend(run.0.to_le_bytes());
        blake3::keyed_hash(&self.key, &text)
    }

    /// Whether this ledger made the token. The duration of the check does not reveal the right proof.
    pub(crate) fn is_own(&self, token: &JobToken) -> bool {
        self.proof(token.job, token.run) == blake3::Hash::from_bytes(token.proof)
    }

    /// Adds to an order the token that its processes show to gateways.
    pub(crate) fn give(&self, mut order: NodeOrder) -> NodeOrder {
        let Some(launch) = order.launch_mut() else { return order };
        let (job, run) = (launch.job, launch.part.run());
        let token = JobToken { job, run, proof: *self.proof(job, run).as_bytes() };
        launch.access = Some(JobAccess { token, server: self.server.clone() });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(folder: &tempfile::TempDir, key: &str) -> JobTokens {
        let path = folder.path().join(key);
        let signer = Signer::load_or_draft(&path).unwrap();
        crate::signing::adopt(&path, &signer.public_key()).unwrap();
        JobTokens::new(&signer, None)
    }

    #[test]
    fn a_token_is_right_for_one_run_of_one_job_and_of_one_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let own = tokens(&folder, "own");
        let (job, run) = (JobId { number: 7, index: Some(2) }, RunId(9));
        let token = JobToken { job, run, proof: *own.proof(job, run).as_bytes() };
        assert!(own.is_own(&token));
        assert!(tokens(&folder, "own").is_own(&token), "a restart makes no difference");
        assert!(!tokens(&folder, "other").is_own(&token));
        for (job, run) in [
            (JobId::job(7), run),
            (JobId { number: 7, index: Some(3) }, run),
            (JobId { number: 8, index: Some(2) }, run),
            (job, RunId(10)),
        ] {
            assert!(!own.is_own(&JobToken { job, run, ..token }));
        }
        let mut proof = token.proof;
        proof[31] ^= 1;
        assert!(!own.is_own(&JobToken { proof, ..token }));
    }
}
