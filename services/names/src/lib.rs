//! Users, groups and hosts by the names that this host knows.
//!
//! The C library is not asked: it loads modules to find its answers, which a statically linked program may not do. So
//! the files of users and groups are read here, and everything else is asked of `getent`, which asks LDAP, `sssd` and
//! the like.

mod guarded;

pub use guarded::guarded;

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{
    io::{self, ErrorKind, Read as _},
    net::{IpAddr, SocketAddr},
    os::fd::AsFd as _,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Where `getent` is. `PATH` comes last: it can be empty, or lead to the working directory.
const GETENT: [&str; 3] = ["/usr/bin/getent", "/bin/getent", "getent"];
/// How long `getent` may take for a user or a group.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it may take for a host: by default three servers are each asked twice for 5 seconds.
const HOST_LIMIT: Duration = Duration::from_secs(35);
/// Users and groups that `getent` did not tell in time: no more are asked for, since a list can have many of them.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// A user of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The number of the first group.
    pub gid: u32,
    /// The home folder.
    pub home: String,
    /// The login shell; empty for the usual one, `/bin/sh`.
    pub shell: String,
}

impl User {
    /// The user with a login name; `None` also if nobody can tell.
    pub fn named(name: &str) -> Option<Self> {
        Self::look_up(name).ok().flatten()
    }

    /// The user with a login name.
    ///
    /// # Errors
    /// `getent` cannot be started, or does not answer in time.
    pub fn look_up(name: &str) -> io::Result<Option<Self>> {
        let found = find(&file("passwd"), Self::parse, |user| user.name == name);
        // `getent` would take some names for numbers.
        if found.is_some() || is_number(name) {
            return Ok(found);
        }
        // The source may spell a name differently, for example where case does not matter.
        Ok(find(&account("passwd", name)?, Self::parse, |_| true))
    }

    /// The same for a service, which asks again however late `getent` was before.
    ///
    /// # Errors
    /// `getent` cannot be started, or does not answer in time.
    pub fn ask(name: &str) -> io::Result<Option<Self>> {
        let found = find(&file("passwd"), Self::parse, |user| user.name == name);
        if found.is_some() || is_number(name) {
            return Ok(found);
        }
        Ok(find(&getent("passwd", name, LIMIT)?, Self::parse, |_| true))
    }

    /// The numbers of all groups of the user, the first one among them.
    ///
    /// # Errors
    /// `getent` cannot be started, or does not answer in time.
    pub fn groups(&self) -> io::Result<Vec<u32>> {
        let told = getent("initgroups", &self.name, LIMIT)?;
        let mut groups = vec![self.gid];
        for group in told.split_whitespace().skip(1).filter_map(|word| word.parse().ok()) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        Ok(groups)
    }

    /// The user with a number.
    pub fn numbered(uid: u32) -> Option<Self> {
        let is_it = |user: &Self| user.uid == uid;
        numbered("passwd", uid, Self::parse, is_it)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(7, ':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        let home = fields.nth(1).unwrap_or_default().to_owned();
        Some(Self { name, uid, gid, home, shell: fields.next().unwrap_or_default().to_owned() })
    }
}

/// The name of the group with a number.
pub fn group_name(gid: u32) -> Option<String> {
    let parse = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse::<u32>().ok()?))
    };
    let is_it = |(_, number): &(String, u32)| *number == gid;
    numbered("group", gid, parse, is_it).map(|(name, _)| name)
}

/// The number of the group with a name. It is for services too, which ask again however late `getent` was before.
///
/// # Errors
/// `getent` cannot be started, or does not answer in time.
pub fn group_number(name: &str) -> io::Result<Option<u32>> {
    let parse = |line: &str| {
        let mut fields = line.split(':');
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse::<u32>().ok()?))
    };
    let found = find(&file("group"), parse, |(own, _)| own == name);
    // `getent` would take some names for numbers.
    if found.is_some() || is_number(name) {
        return Ok(found.map(|(_, number)| number));
    }
    Ok(find(&getent("group", name, LIMIT)?, parse, |_| true).map(|(_, number)| number))
}

/// The entry with a number, from the file or else from `getent`.
fn numbered<T>(
    database: &str,
    number: u32,
    parse: impl Fn(&str) -> Option<T>,
    is_it: impl Fn(&T) -> bool,
) -> Option<T> {
    let found = find(&file(database), &parse, &is_it);
    found.or_else(|| find(&account(database, &number.to_string()).ok()?, parse, is_it))
}

fn is_number(name: &str) -> bool {
    name.trim_start().trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit())
}

fn file(database: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/etc/{database}")).unwrap_or_default()).into_owned()
}

/// The first matching entry. Comments, lines for NIS and malformed lines are skipped.
fn find<T>(lines: &str, parse: impl Fn(&str) -> Option<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let is_entry = |line: &&str| !line.trim_start().starts_with(['#', '+', '-']);
    lines.lines().filter(is_entry).filter_map(parse).find(is_it)
}

/// The answer of `getent` about a user or a group; empty if it knows none.
fn account(database: &str, key: &str) -> io::Result<String> {
    if IS_SILENT.load(Ordering::Relaxed) {
        return Err(io::Error::new(ErrorKind::TimedOut, "getent did not answer in time before"));
    }
    let answer = getent(database, key, LIMIT);
    let is_late = answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut);
    IS_SILENT.fetch_or(is_late, Ordering::Relaxed);
    answer
}

/// The answer of `getent`; empty if it knows none.
fn getent(database: &str, key: &str, limit: Duration) -> io::Result<String> {
    let ask = |program| {
        let mut command = Command::new(program);
        command.args([database, "--", key]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    };
    let is_there = |asked: &io::Result<Child>| !matches!(asked, Err(error) if error.kind() == ErrorKind::NotFound);
    let asked = GETENT.into_iter().map(ask).find(is_there);
    let asked = asked.ok_or_else(|| io::Error::other("there is no getent to ask for names"))?;
    let asked = asked.map_err(|error| io::Error::other(format!("getent cannot be started: {error}")))?;
    let said = output_of(asked, limit).map_err(|error| io::Error::new(error.kind(), format!("getent: {error}")))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The whole standard output of a process, which ends with it or when the time is over.
fn output_of(mut process: Child, limit: Duration) -> io::Result<Vec<u8>> {
    let read = process.stdout.take().map(|pipe| read_within(pipe, limit));
    let _ = process.kill();
    let _ = process.wait();
    read.unwrap_or_else(|| Ok(Vec::new()))
}

fn read_within(mut pipe: ChildStdout, limit: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], left) {
            Ok(0) => {
                let text = format!("no answer within {limit:?}");
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            Err(Errno::EINTR) => continue,
            polled => polled?,
        };
        match pipe.read(&mut buffer)? {
            0 => return Ok(said),
            length => said.extend_from_slice(&buffer[..length]),
        }
    }
}

/// No address of a host is known.
pub fn unknown_host() -> io::Error {
    io::Error::other("no address of that host is known")
}

/// The addresses of `HOST:PORT`, in the order in which to try them; none for an unknown host.
///
/// # Errors
/// It is not a host with a port, or `getent` cannot be run.
pub fn socket_addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (host, port) = address.rsplit_once(':').ok_or_else(unknown_host)?;
    let port = port.parse().map_err(|_| unknown_host())?;
    Ok(listed(&getent("ahosts", host, HOST_LIMIT)?, port))
}

/// The addresses in the output of `getent ahosts`: one line for each kind of socket.
fn listed(said: &str, port: u16) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for line in said.lines() {
        let first = line.split_ascii_whitespace().next().and_then(|word| word.parse::<IpAddr>().ok());
        if let Some(address) = first.map(|address| SocketAddr::new(address, port))
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "#ann:x:7:7::/:/bin/sh\n+ann::::::\nann:x:bad:0::/:/bin/sh\nroot:x:0:0:root:/root:/bin/bash\n\
                         ann:x:1000:100:Ann, 0:/home/ann:/bin/sh\n";

    fn user(name: &str, uid: u32, gid: u32, home: &str, shell: &str) -> User {
        let [name, home, shell] = [name, home, shell].map(str::to_owned);
        User { name, uid, gid, home, shell }
    }

    #[test]
    fn users_are_found_by_a_whole_field_in_a_right_line() {
        let ann = user("ann", 1000, 100, "/home/ann", "/bin/sh");
        assert_eq!(find(USERS, User::parse, |user| user.name == "ann"), Some(ann.clone()));
        assert_eq!(find(USERS, User::parse, |user| user.uid == 1000), Some(ann));
        assert_eq!(find(USERS, User::parse, |user| user.uid == 7 || user.name == "an"), None);
        assert_eq!(User::parse("ann:x:1000:100::/home/ann:"), Some(user("ann", 1000, 100, "/home/ann", "")));
        assert_eq!(User::parse("ann:x:1000:100"), Some(user("ann", 1000, 100, "", "")));
    }

    #[test]
    fn the_names_of_this_host_are_those_of_the_c_library() {
        let root = User::named("root").unwrap();
        assert_eq!((root.uid, root.gid, &*root.home), (0, 0, "/root"));
        assert_eq!(User::numbered(0), User::named("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(User::numbered(u32::MAX - 7), None);
        for name in ["", "no-such-user", "-n", "--help", "0", "+0", "-4294967296", " 0", "root:x"] {
            assert_eq!(User::named(name), None, "{name}");
        }
    }

    #[test]
    fn what_the_files_do_not_have_is_asked_of_getent() {
        assert!(getent("passwd", "root", LIMIT).unwrap().starts_with("root:"));
        assert_eq!(getent("passwd", "no-such-user", LIMIT).unwrap(), "");
    }

    #[test]
    fn a_process_that_does_not_answer_is_ended() {
        let run = |line: &str, limit| {
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::null());
            output_of(shell.spawn().unwrap(), limit)
        };
        let long = Duration::from_secs(60);
        assert_eq!(run("printf one; sleep 0.1; printf two", long).unwrap(), b"onetwo");
        // What it leaves running keeps the pipe open. Who waited for one of these would not come back.
        for line in ["printf one; exec sleep infinity", "sleep 60 & printf one"] {
            let error = run(line, Duration::from_millis(200)).unwrap_err();
            assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::TimedOut, "no answer within 200ms"), "{line}");
        }
        // A process that says that it has no more to say need not end by itself.
        assert_eq!(run("printf one; exec sleep infinity >&-", long).unwrap(), b"one");
    }

    #[test]
    fn hosts_are_looked_up_by_name_and_addresses_are_not() {
        let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        assert_eq!(socket_addresses("192.0.2.7:80").unwrap(), parsed(&["192.0.2.7:80"]));
        assert_eq!(socket_addresses("[::1]:7457").unwrap(), parsed(&["[::1]:7457"]));
        let local = socket_addresses("localhost:7457").unwrap();
        assert!(local.iter().all(|address| address.ip().is_loopback() && address.port() == 7457), "{local:?}");
        let said = "::1     STREAM localhost\n::1 DGRAM\n127.0.0.1 STREAM\n127.0.0.1 RAW\nnonsense\n";
        assert_eq!(listed(said, 7), parsed(&["[::1]:7", "127.0.0.1:7"]));
        assert_eq!(socket_addresses("no-such-host.invalid:1").unwrap(), []);
        assert_eq!(socket_addresses("localhost").unwrap_err().to_string(), "no address of that host is known");
    }
}
