//! `scrontab`: the table of jobs that are repeated at certain times.

use super::{
    Ended, batch, print,
    site::{Site, os_text, variable},
    wanted,
};
use jiff::{Zoned, tz::TimeZone};
use muster_cli::connection::ConnectionOptions;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId,
    crontab::{CronEntry, CrontabRequest},
    resources::IndexSet,
    views::ErrorCode,
};
use muster_slurm::{
    crontab::{BadLine, EXAMPLE, Entry, entries, with_disabled},
    queries::{
        Failure,
        scrontab::{Deed, parse},
    },
};
use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

const NAME: &str = "scrontab";
/// The most bytes of a table that are read; the system takes fewer.
const MAX_BYTES: u64 = 1 << 20;

/// Runs a command line of `scrontab`.
pub fn run(connection: &ConnectionOptions, site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    let own = site.caller()?;
    let user = command.user.map_or_else(|| own.clone(), |user| user.parse().map_or(user, super::site::user_name));
    let is_own = user == own;
    match command.deed {
        Deed::List => match table(site, &user)? {
            Some(text) => print(&text),
            None => {
                print(&format!("no crontab for {user}\n"));
                return Ok(1);
            }
        },
        Deed::Remove => {
            let user = (!is_own).then_some(user);
            let removal = CrontabRequest { user, ..CrontabRequest::default() };
            let done = site.client.set_crontab(CommandId::new_now(), &removal);
            done.map_err(|error| refused(site, &error))?;
        }
        Deed::Edit | Deed::Set(_) if !is_own => {
            return Err(Failure::error(NAME, "the table of another user can be listed and removed, not set"));
        }
        Deed::Edit => edit(connection, site, &user)?,
        Deed::Set(file) => set(connection, site, &text_of(&file)?).map_err(|problem| match problem {
            Problem::Line(BadLine { number, why }) => {
                Failure::error(NAME, format_args!("{file}, line {}: {why}; nothing was changed", number + 1))
            }
            Problem::Other(failure) => failure,
        })?,
    }
    Ok(0)
}

/// The text of a user's table, with its disabled lines marked.
fn table(site: &mut Site, user: &str) -> Result<Option<String>, Failure> {
    let view = site.client.crontab(user, Moment::Now).map_err(|error| refused(site, &error))?;
    Ok(view.text.map(|text| with_disabled(&text, &view.disabled)))
}

fn refused(site: &Site, error: &ClientError) -> Failure {
    match error.code() {
        None => site.failure(error),
        Some(ErrorCode::PermissionDenied) => Failure::error(NAME, "Access/permission denied"),
        Some(_) => Failure::error(NAME, error),
    }
}

fn text_of(file: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file {
        "-" => io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::error(NAME, format_args!("{file} cannot be read: {}", os_text(&error))))?;
    Ok(text)
}

/// Why a table is not set.
enum Problem {
    /// A line cannot be read.
    Line(BadLine),
    /// Anything else.
    Other(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

/// Sets the caller's table.
fn set(connection: &ConnectionOptions, site: &mut Site, text: &str) -> Result<(), Problem> {
    let home = variable("HOME").unwrap_or_else(|| "/".to_owned());
    let found = entries(text, &zone_rule(), &home).map_err(Problem::Line)?;
    let mut asked = Vec::new();
    for Entry { lines, script } in found {
        let number = lines.last;
        let spec = batch::of_script(connection, &mut site.client, &script).map_err(|failure| {
            let why = failure.lines.join("; ");
            Problem::Line(BadLine { number, why })
        })?;
        asked.push(CronEntry { lines, spec });
    }
    let request = CrontabRequest { text: text.to_owned(), entries: asked, user: None };
    let done = site.client.set_crontab(CommandId::new_now(), &request);
    done.map(drop).map_err(|error| refused(site, &error).into())
}

/// Lets the caller change the table with an editor, until it can be set.
fn edit(connection: &ConnectionOptions, site: &mut Site, user: &str) -> Result<(), Failure> {
    let mut text = table(site, user)?.unwrap_or_else(|| EXAMPLE.to_owned());
    loop {
        text = edited(&text)?;
        let said = match set(connection, site, &text) {
            Ok(()) => return Ok(()),
            Err(Problem::Other(failure)) => return Err(failure),
            Err(Problem::Line(BadLine { number, why })) => {
                text = marked_bad(&text, number);
                format!("line {}: {why}", number + 1)
            }
        };
        if !wants_again(&said) {
            return Ok(());
        }
    }
}

fn marked_bad(text: &str, number: u32) -> String {
    let bad = IndexSet::from_range(number, number);
    with_disabled(text, &bad).replacen("#DISABLED: ", "#BAD: ", 1)
}

fn wants_again(said: &str) -> bool {
    let question = format!(
        "There are errors in your crontab.\n{said}\nThe failed line(s) is commented out with #BAD:\nDo you want to retry \
         the edit? (y/n) "
    );
    loop {
        print(&question);
        let mut answer = String::new();
        match io::stdin().lock().read_line(&mut answer) {
            Ok(1..) if answer.trim_start().starts_with(['y', 'Y']) => return true,
            Ok(1..) if !answer.trim_start().starts_with(['n', 'N']) => {}
            _ => return false,
        }
    }
}

/// The text after an editor had it.
fn edited(text: &str) -> Result<String, Failure> {
    let folder = variable("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".to_owned());
    let path = Path::new(&folder).join(format!("scrontab-{}", CommandId::new_now()));
    let lost = |error: io::Error| Failure::error(NAME, format_args!("{}: {}", path.display(), os_text(&error)));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(lost)?;
    let done = file.write_all(text.as_bytes()).map_err(lost).and_then(|()| run_editor(&path));
    let changed = done.and_then(|()| std::fs::read_to_string(&path).map_err(lost));
    let _ = std::fs::remove_file(&path);
    changed
}

fn run_editor(path: &Path) -> Result<(), Failure> {
    let given = |name: &str| variable(name).filter(|editor| !editor.is_empty());
    let editor = given("VISUAL").or_else(|| given("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let ended = std::process::Command::new(&editor).arg(path).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::fatal(NAME, "editor returned non-zero exit code")),
        Err(error) => Err(Failure::fatal(NAME, format_args!("{editor} cannot be started: {}", os_text(&error)))),
    }
}

/// The caller's time zone as a rule of POSIX: it is at the end of the zone's file. Without one, the present offset.
fn zone_rule() -> String {
    let named = variable("TZ").filter(|name| !name.is_empty());
    let named = named.as_deref().map(|name| name.strip_prefix(':').unwrap_or(name));
    if let Some(rule) = named.filter(|rule| TimeZone::posix(rule).is_ok()) {
        return rule.to_owned();
    }
    let path = match named {
        None => PathBuf::from("/etc/localtime"),
        Some(name) => Path::new("/usr/share/zoneinfo").join(name),
    };
    let rule = std::fs::read(path).ok().and_then(|bytes| {
        let text = bytes.strip_prefix(b"TZif").and_then(|rest| rest.strip_suffix(b"\n"))?;
        let start = text.iter().rposition(|byte| *byte == b'\n')? + 1;
        std::str::from_utf8(&text[start..]).ok().map(str::to_owned)
    });
    rule.filter(|rule| TimeZone::posix(rule).is_ok()).unwrap_or_else(present_offset)
}

fn present_offset() -> String {
    let seconds = Zoned::now().offset().seconds();
    // POSIX counts to the west.
    let (sign, minutes) = (if seconds > 0 { '-' } else { '+' }, seconds.unsigned_abs() / 60);
    format!("<LOCAL>{sign}{}:{:02}", minutes / 60, minutes % 60)
}
