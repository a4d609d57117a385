//! Users, groups and hosts by the names that this host knows.
//!
//! The C library is not asked: it loads modules to find its answers, which a statically linked program may not do. So
//! the files of users and groups are read here, and everything else is asked of `getent`, which asks LDAP, `sssd` and
//! the like.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    process::{Command, Output, Stdio},
};

/// Where `getent` is. `PATH` comes last: it can be empty, or lead to the working directory.
const GETENT: [&str; 3] = ["/usr/bin/getent", "/bin/getent", "getent"];

/// A user of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The number of the first group.
    pub gid: u32,
}

impl User {
    /// The user with a login name.
    pub fn named(name: &str) -> Option<Self> {
        let found = find(&file("passwd"), Self::parse, |user| user.name == name);
        // `getent` would take some names for numbers.
        if found.is_some() || is_number(name) {
            return found;
        }
        // The source may spell a name differently, for example where case does not matter.
        find(&said("passwd", name), Self::parse, |_| true)
    }

    /// The user with a number.
    pub fn numbered(uid: u32) -> Option<Self> {
        let is_it = |user: &Self| user.uid == uid;
        numbered("passwd", uid, Self::parse, is_it)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        Some(Self { name, uid, gid: fields.next()?.parse().ok()? })
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

/// The entry with a number, from the file or else from `getent`.
fn numbered<T>(
    database: &str,
    number: u32,
    parse: impl Fn(&str) -> Option<T>,
    is_it: impl Fn(&T) -> bool,
) -> Option<T> {
    let found = find(&file(database), &parse, &is_it);
    found.or_else(|| find(&said(database, &number.to_string()), parse, is_it))
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

/// The answer of `getent` for a user or group; empty if it knows none or is not there.
fn said(database: &str, key: &str) -> String {
    getent(database, key).unwrap_or_default()
}

fn getent(database: &str, key: &str) -> io::Result<String> {
    let ask = |program: &str| Command::new(program).args([database, "--", key]).stdin(Stdio::null()).output();
    let is_there = |asked: &io::Result<Output>| !matches!(asked, Err(error) if error.kind() == ErrorKind::NotFound);
    let asked = GETENT.into_iter().map(ask).find(is_there);
    let output = asked.ok_or_else(|| io::Error::other("there is no getent to ask for names"))?;
    let output = output.map_err(|error| io::Error::other(format!("getent cannot be started: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// No address of a host is known.
pub(crate) fn unknown_host() -> io::Error {
    io::Error::other("no address of that host is known")
}

/// The addresses of `HOST:PORT`, in the order in which to try them; none for an unknown host.
///
/// # Errors
/// It is not a host with a port, or `getent` cannot be run.
pub(crate) fn socket_addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (host, port) = address.rsplit_once(':').ok_or_else(unknown_host)?;
    let port = port.parse().map_err(|_| unknown_host())?;
    Ok(listed(&getent("ahosts", host)?, port))
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

    #[test]
    fn users_are_found_by_a_whole_field_in_a_right_line() {
        let ann = User { name: "ann".to_owned(), uid: 1000, gid: 100 };
        assert_eq!(find(USERS, User::parse, |user| user.name == "ann"), Some(ann.clone()));
        assert_eq!(find(USERS, User::parse, |user| user.uid == 1000), Some(ann));
        assert_eq!(find(USERS, User::parse, |user| user.uid == 7 || user.name == "an"), None);
    }

    #[test]
    fn the_names_of_this_host_are_those_of_the_c_library() {
        assert_eq!(User::named("root"), Some(User { name: "root".to_owned(), uid: 0, gid: 0 }));
        assert_eq!(User::numbered(0), User::named("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(User::numbered(u32::MAX - 7), None);
        for name in ["", "no-such-user", "-n", "--help", "0", "+0", "-4294967296", " 0", "root:x"] {
            assert_eq!(User::named(name), None, "{name}");
        }
    }

    #[test]
    fn what_the_files_do_not_have_is_asked_of_getent() {
        assert!(getent("passwd", "root").unwrap().starts_with("root:"));
        assert_eq!(getent("passwd", "no-such-user").unwrap(), "");
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
