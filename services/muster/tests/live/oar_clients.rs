//! Unmodified third-party programs that drive OAR, against a live system. `ops/test` installs the programs; the workloads are
//! in `tests/oar-clients`.

use crate::{clients, oar};

/// OAR-C-02, OAR-C-03
#[test]
fn dask_has_workers_that_are_jobs() {
    let site = oar::site();
    let Some(said) = clients::run(&site, "oar-clients", "python WORKLOADS/with_dask.py") else { return };
    assert_eq!(said, "done\n");
    site.system.wait_until("its jobs are over", || site.ok("oarstat").is_empty());
}
