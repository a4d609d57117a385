//! A checked program.

use crate::{
    code::Code,
    compile::compile,
    fault::{Fault, Faults, Position},
    parser::parse,
};

/// Bytes of a program's text.
const LONGEST: usize = 1 << 20;

/// A program without mistakes, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) file: String,
    pub(crate) code: Code,
}

impl Program {
    /// Checks a text and compiles it (PBS-X-01). The file's name is for messages only.
    ///
    /// # Errors
    /// All mistakes in the order of the lines: tokens, grammar, names, types, numbers of arguments, ways through
    /// functions without `return`. After 200 mistakes the rest is not looked for.
    pub fn check(file_name: &str, text: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::new(file_name);
        if text.len() > LONGEST {
            faults.add(Position::START, "", format!("the program has {} bytes; the maximum is {LONGEST}", text.len()));
            return Err(faults.into_list());
        }
        let source = parse(text, &mut faults);
        let code = compile(&source, &mut faults);
        if !faults.is_empty() {
            return Err(faults.into_list());
        }
        Ok(Self { file: file_name.to_owned(), code })
    }

    /// The name of the file that it was read from, as it was given to [`Self::check`].
    pub fn file_name(&self) -> &str {
        &self.file
    }
}
