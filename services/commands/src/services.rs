//! The second program, `muster-services`: the services, and the commands that need parts of them. This program becomes
//! it by exec.

use crate::exit::{CommandResult, Failure};
use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Its name.
const PROGRAM: &str = "muster-services";
/// Where it can be, relative to the folder of this program.
const FOLDERS: [&str; 2] = ["", "../libexec/muster"];
/// The variable with its path if it is elsewhere.
const VARIABLE: &str = "MUSTER_SERVICES";

/// Replaces this program by the second one, with the same command line: the process, its environment and its files
/// stay.
///
/// # Errors
/// The program does not exist or cannot be started; otherwise this does not return.
pub fn exec() -> CommandResult {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = match named {
        Some(program) => program,
        None => find(&std::env::current_exe()?)?,
    };
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "muster".into());
    let error = Command::new(&program).arg0(name).args(words).exec();
    Err(Failure::failed(format!("{} cannot be started: {error}", program.display())))
}

/// Finds the second program near the first.
fn find(muster: &Path) -> Result<PathBuf, Failure> {
    let folder = muster.parent().unwrap_or(Path::new("/"));
    let places = FOLDERS.map(|below| folder.join(below).join(PROGRAM));
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let [beside, elsewhere] = places.map(|place| place.display().to_string());
        Failure::failed(format!(
            "this is done by the program {PROGRAM}, which is neither {beside} nor {elsewhere}; install it, or name it in \
             {VARIABLE}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_second_program_is_beside_the_first_or_in_the_folder_for_what_people_do_not_call() {
        let root = tempfile::tempdir().unwrap();
        let (bin, libexec) = (root.path().join("bin"), root.path().join("libexec/muster"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&libexec).unwrap();
        let muster = bin.join("muster");
        let missing = find(&muster).unwrap_err().message;
        assert!(missing.contains(&format!("neither {}/muster-services nor ", bin.display())), "{missing}");
        fs::write(libexec.join(PROGRAM), "").unwrap();
        assert_eq!(find(&muster).unwrap().canonicalize().unwrap(), libexec.join(PROGRAM));
        fs::write(bin.join(PROGRAM), "").unwrap();
        assert_eq!(find(&muster).unwrap(), bin.join(PROGRAM));
    }
}
