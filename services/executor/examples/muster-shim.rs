//! The smallest program that shims can be started from; the tests use it in place of muster.

fn main() {
    muster_executor::serve_shims_if_asked(muster_dialect::Dialects::NONE);
    eprintln!("usage: muster-shim {} SPOOL", muster_executor::SHIM_SERVER);
    std::process::exit(2);
}
