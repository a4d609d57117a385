//! Users, groups and hosts by the names that this host knows them by.
//!
//! The C library is not asked: it answers from modules that it loads, which a program that has it linked in may not do. So
//! the files are read here, and what they do not have is asked of `getent`, which asks LDAP, `sssd` and the like.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    process::{Command, Stdio},
};

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
        Self::parse(&line("passwd", NAME, name)?)
    }

    /// The user with a number.
    pub fn numbered(uid: u32) -> Option<Self> {
        Self::parse(&line("passwd", NUMBER, &uid.to_string())?)
    }

    fn parse(line: &str) -> Option<Self> {
        let field = |place| line.split(':').nth(place);
        let number = |place| field(place)?.parse().ok();
        Some(Self { name: field(NAME)?.to_owned(), uid: number(NUMBER)?, gid: number(GROUP)? })
    }
}

/// The name of the group with a number.
pub fn group_name(gid: u32) -> Option<String> {
    line("group", NUMBER, &gid.to_string())?.split(':').next().map(str::to_owned)
}

// Places of the fields in the lines of both databases, and of the group in those of users.
const NAME: usize = 0;
const NUMBER: usize = 2;
const GROUP: usize = 3;

/// The line of a database that has this in one of its fields.
fn line(database: &str, place: usize, value: &str) -> Option<String> {
    let file = std::fs::read(format!("/etc/{database}")).unwrap_or_default();
    if let Some(line) = find(&String::from_utf8_lossy(&file), place, value) {
        return Some(line.to_owned());
    }
    // A number would be looked up as one, though a name was meant.
    if place == NAME && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let said = getent(database, value).ok()?;
    said.lines().next().map(str::to_owned)
}

fn find<'a>(file: &'a str, place: usize, value: &str) -> Option<&'a str> {
    file.lines().find(|line| line.split(':').nth(place) == Some(value))
}

/// What `getent` says of a key; nothing if it knows none.
fn getent(database: &str, key: &str) -> io::Result<String> {
    let output = Command::new("getent").args([database, "--", key]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::new(error.kind(), format!("getent cannot be started: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The addresses of `HOST:PORT`, in the order in which they are to be tried. Port 80 is that of an address without one.
///
/// # Errors
/// The host has no address, or nobody can be asked.
pub(crate) fn socket_addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let unknown = || io::Error::new(ErrorKind::NotFound, "the name has no address");
    let (host, port) = address.rsplit_once(':').ok_or_else(unknown)?;
    let port = port.parse().map_err(|_| unknown())?;
    let addresses = listed(&getent("ahosts", host)?, port);
    if addresses.is_empty() { Err(unknown()) } else { Ok(addresses) }
}

/// The addresses in what `getent ahosts` says: one line for each kind of socket.
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

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n+nis\nann:x:1000:100:Ann, 0:/home/ann:/bin/sh\n";

    #[test]
    fn users_and_groups_are_found_by_a_whole_field() {
        let ann = User { name: "ann".to_owned(), uid: 1000, gid: 100 };
        assert_eq!(find(USERS, NAME, "ann").and_then(User::parse), Some(ann.clone()));
        assert_eq!(find(USERS, NUMBER, "1000").and_then(User::parse), Some(ann));
        for (place, value) in [(NAME, "an"), (NAME, ""), (NUMBER, "100"), (NUMBER, "00"), (NAME, "x")] {
            assert_eq!(find(USERS, place, value), None, "{place} {value}");
        }
        assert_eq!(User::parse("+nis"), None);
    }

    #[test]
    fn the_names_of_this_host_are_those_of_the_c_library() {
        assert_eq!(User::named("root"), Some(User { name: "root".to_owned(), uid: 0, gid: 0 }));
        assert_eq!(User::numbered(0), User::named("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(User::numbered(u32::MAX - 7), None);
        for name in ["", "no-such-user", "-n", "--help", "0", "root:x"] {
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
        assert_eq!(socket_addresses("no-such-host.invalid:1").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
