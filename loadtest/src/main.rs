//! muster.
fn main() {}
