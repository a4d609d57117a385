//! What the whole-system tests share with the load generators: the simulation with faults.

pub mod simulation;

/// The muster binary that was built together with the test that asks.
///
/// # Panics
/// If it was not built.
pub fn muster_binary() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let binary = test.ancestors().nth(2).expect("a test is two folders below the build's results").join("muster");
    assert!(binary.is_file(), "{} is missing: build the workspace first, as ops/test does", binary.display());
    binary
}
