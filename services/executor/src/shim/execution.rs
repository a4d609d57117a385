//! The arguments of `execve` for a task, prepared before the task is forked and in the same place for each task: a
//! child has each page copied that it writes, and all pages of the shim unmapped when it becomes its program. That is
//! most of the cost of starting a short task.

use crate::environment::OwnValue;
use nix::errno::Errno;
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char},
    ptr,
};

/// The digits of the longest process id.
const PROCESS_ID_DIGITS: usize = 10;

/// A word of a command.
///
/// # Errors
/// It cannot be one; for people.
pub fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "an argument holds a NUL byte".to_owned())
}

/// The program that a task becomes.
pub struct ProgramPath {
    path: CString,
    argv: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl ProgramPath {
    /// The file and its arguments, its own name first.
    pub fn new(path: CString, argv: Vec<CString>) -> Self {
        let pointers = argv.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
        Self { path, argv, pointers }
    }

    /// The file.
    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// The command: its own name for itself and its arguments.
    pub fn argv(&self) -> &[CString] {
        &self.argv
    }

    /// Its own name for itself.
    pub fn name(&self) -> &CStr {
        self.argv.first().map_or(c"", |name| name)
    }

    /// Replaces this process by the program. It returns only with the reason why that failed.
    pub fn execute(&self, environment: &mut Environment) -> Errno {
        environment.write_process_id(std::process::id());
        // SAFETY: both lists end with a null pointer, and what they point to lives as long as `self` and the
        // environment.
        unsafe { libc::execve(self.path.as_ptr(), self.pointers.as_ptr(), environment.pointers.as_ptr()) };
        Errno::last()
    }
}

/// The environment for one task after the other.
pub struct Environment {
    /// Variables that all tasks of the launch share.
    common: Vec<CString>,
    /// Variables of a single task, one after the other, each with a NUL byte at its end.
    own: Vec<u8>,
    /// Offsets in `own` with room for the process id.
    process_ids: Vec<usize>,
    pointers: Vec<*const c_char>,
}

impl Environment {
    /// The variables that all tasks have. One that holds a NUL byte, which no variable can, is left out.
    pub fn new(variables: &BTreeMap<String, String>) -> Self {
        let text = |(name, value): (&String, &String)| CString::new(format!("{name}={value}")).ok();
        Self::of(variables.iter().filter_map(text).collect())
    }

    /// These variables, each `NAME=VALUE`.
    pub fn of(common: Vec<CString>) -> Self {
        let mut environment = Self { common, own: Vec::new(), process_ids: Vec::new(), pointers: Vec::new() };
        environment.set_own([]);
        environment
    }

    /// Replaces the last task's own variables with the next task's. They also replace common variables of the same
    /// name, such as the rank of an outer task: most programs believe the first of two.
    pub fn set_own(&mut self, variables: impl IntoIterator<Item = (String, OwnValue)>) {
        self.own.clear();
        self.process_ids.clear();
        let mut starts = Vec::new();
        for (name, value) in variables {
            let has_nul = |text: &str| text.contains('\0');
            if has_nul(&name) || matches!(&value, OwnValue::Text(text) if has_nul(text)) {
                continue;
            }
            starts.push(self.own.len());
            self.own.extend(name.as_bytes());
            self.own.push(b'=');
            match value {
                OwnValue::Text(text) => self.own.extend(text.as_bytes()),
                OwnValue::ProcessId => {
                    self.process_ids.push(self.own.len());
                    self.own.extend([0; PROCESS_ID_DIGITS]);
                }
            }
            self.own.push(0);
        }
        let own = starts.iter().map(|start| &self.own[*start..]);
        let is_own = |variable: &&CString| own.clone().any(|own| own.starts_with(name_of(variable.to_bytes())));
        let common = self.common.iter().filter(|variable| !is_own(variable)).map(|variable| variable.as_ptr());
        self.pointers.clear();
        self.pointers.extend(common.chain(own.clone().map(|own| own.as_ptr().cast())).chain([ptr::null()]));
    }

    /// The variables of the task, each `NAME=VALUE`.
    pub fn texts(&self) -> Vec<&CStr> {
        let texts = self.pointers.iter().take_while(|pointer| !pointer.is_null());
        // SAFETY: each points to a text of this environment that ends with a NUL byte.
        texts.map(|text| unsafe { CStr::from_ptr(*text) }).collect()
    }

    /// Written in place, because there are pointers to the texts.
    fn write_process_id(&mut self, id: u32) {
        for place in &self.process_ids {
            let mut rest = id;
            let digits = rest.checked_ilog10().unwrap_or(0) as usize + 1;
            for digit in self.own[*place..place + digits].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
    }
}

/// The name in `NAME=value`, including the equals sign.
fn name_of(variable: &[u8]) -> &[u8] {
    variable.split_inclusive(|byte| *byte == b'=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables as the program of a task would find them.
    fn seen(environment: &Environment) -> Vec<String> {
        assert!(environment.pointers.last().is_some_and(|end| end.is_null()));
        environment.texts().iter().map(|text| text.to_string_lossy().into_owned()).collect()
    }

    fn text(value: &str) -> OwnValue {
        OwnValue::Text(value.to_owned())
    }

    #[test]
    fn a_task_has_the_variables_of_all_and_its_own() {
        let common = [("A", "1"), ("B", "no\0value"), ("C", "")];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment = Environment::new(&BTreeMap::from(common));
        assert_eq!(seen(&environment), ["A=1", "C="]);
        let own = [("RANK", text("12")), ("PID", OwnValue::ProcessId), ("BAD", text("\0")), ("LAST", text(""))];
        environment.set_own(own.map(|(name, value)| (name.to_owned(), value)));
        environment.write_process_id(345);
        assert_eq!(seen(&environment), ["A=1", "C=", "RANK=12", "PID=345", "LAST="]);
        environment.set_own([("RANK".to_owned(), text("3"))]);
        assert_eq!(seen(&environment), ["A=1", "C=", "RANK=3"], "nothing is left of the task before");
        environment.set_own([("A".to_owned(), text("own")), ("CC".to_owned(), text("another"))]);
        assert_eq!(seen(&environment), ["C=", "A=own", "CC=another"], "no name comes twice");
    }

    #[test]
    fn a_process_id_is_written_whole() {
        let mut environment = Environment::new(&BTreeMap::new());
        for id in [0, 7, 10, 4_194_304, u32::MAX] {
            environment.set_own([("P".to_owned(), OwnValue::ProcessId)]);
            environment.write_process_id(id);
            assert_eq!(seen(&environment), [format!("P={id}")]);
        }
    }
}
