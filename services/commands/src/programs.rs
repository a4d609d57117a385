//! The two programs: `muster`, which people call, and `muster-services`, which has the services and the commands that
//! need a part of them. Here is where each of them finds the other, and how `muster` becomes `muster-services`.

use crate::exit::{CommandResult, Failure};
use muster_schemas::codec::version;
use std::{
    ffi::{OsStr, OsString},
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

/// The program that people call.
const MUSTER: &str = "muster";
/// The program with the services.
const SERVICES: &str = "muster-services";
/// Where packages install programs that people call.
const BIN: &str = "bin";
/// Where packages install programs that people do not call, beside [`BIN`].
const LIBEXEC: &str = "libexec/muster";
/// The environment variable that names `muster-services`.
const VARIABLE: &str = "MUSTER_SERVICES";
/// The environment variable with the version of the `muster` that becomes `muster-services`, until that one has read
/// it.
const CALLER_VERSION: &str = "MUSTER_CALLER_VERSION";

/// Has `muster-services` do what the command line asks, in place of this program: the process, its environment and its
/// files stay.
///
/// # Errors
/// It is not there, or cannot be started; otherwise this does not return.
pub fn become_services() -> CommandResult {
    let muster = std::env::current_exe()?;
    // A link or a script that leads back here was taken for it.
    if std::env::var_os(CALLER_VERSION).is_some() {
        return Err(not_services(&muster));
    }
    let program = services_for(&muster, std::env::var_os(VARIABLE))?;
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| MUSTER.into());
    let error = Command::new(&program).arg0(name).args(words).env(CALLER_VERSION, version()).exec();
    Err(Failure::failed(format!("{} cannot be started: {error}", program.display())))
}

/// Makes sure that the `muster` that became this `muster-services` has the same version. It comes before anything that
/// starts a thread or a process.
///
/// # Errors
/// It has another version.
pub fn check_caller() -> Result<(), Failure> {
    let caller = std::env::var_os(CALLER_VERSION);
    // SAFETY: the process has one thread, so nothing else uses the environment.
    unsafe { std::env::remove_var(CALLER_VERSION) };
    match caller {
        Some(caller) if caller != *version() => Err(other_version(&caller)),
        _ => Ok(()),
    }
}

fn other_version(caller: &OsStr) -> Failure {
    let (caller, found) = (caller.display(), version());
    let program = std::env::current_exe().map_or_else(|_| SERVICES.to_owned(), |path| path.display().to_string());
    Failure::failed(format!(
        "expected {SERVICES} {caller}, the version of the {MUSTER} that was called, found {found} in {program}; install \
         both of the same version"
    ))
}

/// The `muster` that is installed with `services`.
pub fn muster_with(services: &Path) -> Option<PathBuf> {
    let found = places(services, MUSTER, LIBEXEC, BIN).into_iter().find(|place| place.is_file())?;
    check_owner(&found, services).ok().map(|()| found)
}

/// `muster-services` as `named`, or else the one that is installed with `muster`.
fn services_for(muster: &Path, named: Option<OsString>) -> Result<PathBuf, Failure> {
    let services = match named.filter(|path| !path.is_empty()) {
        Some(path) => absolute(path.into())?,
        None => services_with(muster)?,
    };
    if is_same_file(&services, muster) {
        return Err(not_services(&services));
    }
    Ok(services)
}

/// A relative path would be searched for in `PATH`, or in a folder that can be anybody's.
fn absolute(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Failure::usage(format!("{VARIABLE}: expected the absolute path of {SERVICES}, found `{}`", path.display())))
}

fn not_services(path: &Path) -> Failure {
    Failure::usage(format!(
        "expected the program {SERVICES}, found {MUSTER} itself: {}; name the right one in {VARIABLE}",
        path.display()
    ))
}

fn services_with(muster: &Path) -> Result<PathBuf, Failure> {
    let places = places(muster, SERVICES, BIN, LIBEXEC);
    let found = places.iter().find(|place| place.is_file()).ok_or_else(|| missing(&places))?;
    check_owner(found, muster)?;
    Ok(found.clone())
}

/// Anybody can put a file, or a link to one, beside a program in a folder such as `/tmp`: only what belongs to root or to the
/// owner of `own` may run in its place.
fn check_owner(other: &Path, own: &Path) -> Result<(), Failure> {
    let owner = own.metadata()?.uid();
    for found in [other.symlink_metadata()?.uid(), other.metadata()?.uid()] {
        if !is_trusted(found, owner) {
            return Err(Failure::failed(format!(
                "expected {} to belong to root or to user number {owner}, who owns {}, found user number {found}; install \
                 both programs as one user, or name the right one in {VARIABLE}",
                other.display(),
                own.display()
            )));
        }
    }
    Ok(())
}

fn is_trusted(other: u32, own: u32) -> bool {
    other == 0 || other == own
}

fn missing(places: &[PathBuf]) -> Failure {
    let tried = match places {
        [beside, elsewhere] => format!("neither {} nor {}", beside.display(), elsewhere.display()),
        _ => format!("not {}", places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")),
    };
    Failure::failed(format!(
        "this is done by the program {SERVICES}, which is {tried}; install it, or name it in {VARIABLE}"
    ))
}

/// Where the other program `name` can be: in the folder of `program`, or in `other` if that folder is `own`. A folder
/// of another name is no place where packages install: what lies relative to it, such as `/tmp/libexec`, can belong to
/// another user.
fn places(program: &Path, name: &str, own: &str, other: &str) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let depth = Path::new(own).components().count();
    let prefix = folder.ancestors().nth(depth).filter(|_| folder.ends_with(own));
    let elsewhere = prefix.map(|prefix| prefix.join(other));
    std::iter::once(folder.to_owned()).chain(elsewhere).map(|folder| folder.join(name)).collect()
}

/// Whether two paths lead to one file, by whatever names and links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    file(one).is_some_and(|one| file(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Status;
    use std::fs;

    /// Empty files, with their folders.
    fn make(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn each_program_is_beside_the_other_or_in_the_folder_that_packages_use() {
        let root = tempfile::tempdir().unwrap();
        let (bin, libexec) = (root.path().join("bin"), root.path().join("libexec/muster"));
        make(root.path(), &["bin/muster", "libexec/muster/other"]);
        let missing = services_for(&bin.join(MUSTER), None).unwrap_err().message;
        let both = format!("neither {} nor {};", bin.join(SERVICES).display(), libexec.join(SERVICES).display());
        assert!(missing.contains(&both), "{missing}");
        make(root.path(), &["libexec/muster/muster-services"]);
        assert_eq!(services_for(&bin.join(MUSTER), None).unwrap(), libexec.join(SERVICES));
        assert_eq!(muster_with(&libexec.join(SERVICES)), Some(bin.join(MUSTER)));
        make(root.path(), &["bin/muster-services", "libexec/muster/muster"]);
        assert_eq!(services_for(&bin.join(MUSTER), Some("".into())).unwrap(), bin.join(SERVICES));
        assert_eq!(muster_with(&libexec.join(SERVICES)), Some(libexec.join(MUSTER)));
    }

    /// Anybody can make `/tmp/libexec` and `/tmp/bin`.
    #[test]
    fn folders_beside_one_of_any_other_name_are_not_searched() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), &["x/muster", "libexec/muster/muster-services", "bin/muster", "y/z/muster-services"]);
        let folder = root.path().join("x");
        let missing = services_for(&folder.join(MUSTER), None).unwrap_err().message;
        assert!(missing.contains(&format!("not {};", folder.join(SERVICES).display())), "{missing}");
        assert_eq!(muster_with(&root.path().join("y/z/muster-services")), None);
    }

    #[test]
    fn a_program_of_another_user_is_not_taken_for_the_other_one() {
        for (other, own, is_taken) in [(0, 0, true), (0, 7, true), (7, 7, true), (7, 0, false), (8, 7, false)] {
            assert_eq!(is_trusted(other, own), is_taken, "{other} beside {own}");
        }
    }

    #[test]
    fn the_program_that_is_named_has_an_absolute_path_and_is_another_one() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), &["bin/muster", "elsewhere/services"]);
        let (muster, other) = (root.path().join("bin/muster"), root.path().join("elsewhere/services"));
        let named = |path: &Path| services_for(&muster, Some(path.into()));
        assert_eq!(named(&other).unwrap(), other);
        for relative in ["muster-services", "./muster-services", "bin/muster-services"] {
            let Failure { status, message, .. } = named(Path::new(relative)).unwrap_err();
            let expected =
                format!("MUSTER_SERVICES: expected the absolute path of muster-services, found `{relative}`");
            assert_eq!((status, message), (Status::Usage, expected));
        }
        let (soft, hard) = (root.path().join("soft"), root.path().join("hard"));
        std::os::unix::fs::symlink(&muster, &soft).unwrap();
        fs::hard_link(&muster, &hard).unwrap();
        for itself in [&muster, &root.path().join("elsewhere/../bin/muster"), &soft, &hard] {
            let Failure { status, message, .. } = named(itself).unwrap_err();
            assert!(status == Status::Usage && message.contains("found muster itself"), "{message}");
            assert!(message.contains(&itself.display().to_string()), "{message}");
        }
        fs::hard_link(&muster, root.path().join("bin/muster-services")).unwrap();
        assert!(services_for(&muster, None).unwrap_err().message.contains("found muster itself"));
    }
}
