//! Archives of agents are unpacked by a process of the owner of the job, so that it can write nothing that the owner cannot
//! write.

use crate::Config;
use muster_schemas::event::Owner;
use nix::unistd::{Gid, Uid, User, getgrouplist, setgroups, setresgid, setresuid};
use std::{
    ffi::CString,
    fs::File,
    os::fd::AsRawFd as _,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};
use tokio::process::Command;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The memory of the process.
const MEMORY_BYTES: u64 = 1 << 30;
/// The most characters of what it says.
const MAX_WHY: usize = 400;

/// Unpacks an archive in a folder.
///
/// # Errors
/// Why not, for people.
pub(crate) async fn unpack(config: &Config, archive: File, owner: &Owner, folder: &str) -> Result<(), String> {
    let Some((program, argument)) = &config.unpacker else {
        return Err("this gateway has no program that unpacks them".to_owned());
    };
    if folder.is_empty() {
        return Err("the job has no folder".to_owned());
    }
    let become_owner = account(owner)?;
    // The owner may not reach the folder of the program, so it is opened before its process is the owner's.
    let words = [argument.clone(), folder.to_owned(), config.max_archive_bytes.to_string()];
    let start = ByDescriptor::new(program, &words).map_err(|error| format!("{}: {error}", program.display()))?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(archive))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // SAFETY: between the fork and the program only system calls are made, on memory that exists already.
    unsafe {
        command.pre_exec(move || {
            become_owner.take_effect()?;
            Err(start.exec())
        });
    }
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Err(_) => Err(format!("it took longer than {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(format!("{} cannot be started: {error}", program.display())),
        Ok(Ok(Output { status, .. })) if status.success() => Ok(()),
        Ok(Ok(Output { stderr, status, .. })) => {
            let said = String::from_utf8_lossy(&stderr);
            let said: String = said.trim().chars().filter(|c| !c.is_control()).take(MAX_WHY).collect();
            Err(if said.is_empty() { format!("the program that unpacks them ended with {status}") } else { said })
        }
    }
}

/// A program and its words.
struct ByDescriptor {
    program: File,
    words: Vec<CString>,
}

impl ByDescriptor {
    fn new(program: &Path, words: &[String]) -> std::io::Result<Self> {
        let name = CString::new(program.as_os_str().as_encoded_bytes())?;
        let words = words.iter().map(|word| CString::new(word.as_str()));
        let words = [Ok(name)].into_iter().chain(words).collect::<Result<_, _>>()?;
        Ok(Self { program: File::open(program)?, words })
    }

    /// Becomes the program, without an environment; returns only if that is not possible. It allocates nothing.
    fn exec(&self) -> std::io::Error {
        let mut words = [std::ptr::null(); 8];
        for (at, word) in words.iter_mut().zip(self.words.iter().take(7)) {
            *at = word.as_ptr();
        }
        let environment = [std::ptr::null::<libc::c_char>()];
        // SAFETY: both lists end with a null pointer, and their strings live until the call does not return.
        unsafe {
            libc::execveat(
                self.program.as_raw_fd(),
                c"".as_ptr(),
                words.as_ptr().cast(),
                environment.as_ptr().cast(),
                libc::AT_EMPTY_PATH,
            )
        };
        std::io::Error::last_os_error()
    }
}

struct Account {
    /// `None`: this process is the owner's already.
    numbers: Option<(Uid, Gid, Vec<Gid>)>,
}

/// The account of an owner as this host knows it.
fn account(owner: &Owner) -> Result<Account, String> {
    let own = Uid::effective();
    if own.as_raw() == owner.uid {
        return Ok(Account { numbers: None });
    }
    if !own.is_root() {
        let user = &owner.user;
        return Err(format!("this gateway does not run as root, and cannot write files of user `{user}`"));
    }
    let found = User::from_name(&owner.user).map_err(|errno| errno.to_string())?;
    let user = found.filter(|user| user.uid.as_raw() == owner.uid);
    let user = user.ok_or_else(|| format!("user `{}` is another or none on the host of the gateway", owner.user))?;
    let name = CString::new(user.name).map_err(|error| error.to_string())?;
    let groups = getgrouplist(&name, user.gid).map_err(|errno| errno.to_string())?;
    Ok(Account { numbers: Some((user.uid, user.gid, groups)) })
}

impl Account {
    fn take_effect(&self) -> std::io::Result<()> {
        if let Some((uid, gid, groups)) = &self.numbers {
            setgroups(groups)?;
            setresgid(*gid, *gid, *gid)?;
            setresuid(*uid, *uid, *uid)?;
        }
        let memory = nix::sys::resource::Resource::RLIMIT_AS;
        nix::sys::resource::setrlimit(memory, MEMORY_BYTES, MEMORY_BYTES)?;
        Ok(())
    }
}
