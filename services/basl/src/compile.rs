//! Checks a program and compiles it: names, types, and instructions, function by function in the order of the text.

mod calls;
mod conditions;
mod emitter;
mod expressions;
mod scopes;
mod statements;

use crate::{code::Code, fault::Faults, syntax::Source};
use emitter::Compiler;

/// Compiles a program and tells its mistakes. With mistakes the code is of no use.
pub(crate) fn compile(source: &Source<'_>, faults: &mut Faults) -> Code {
    let mut compiler = Compiler::new(source, faults);
    for item in &source.items {
        compiler.item(item);
    }
    compiler.start(&source.assignments);
    if let Some(main) = &source.main {
        compiler.main(main);
    }
    compiler.code
}
