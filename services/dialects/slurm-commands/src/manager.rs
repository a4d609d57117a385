//! `sacctmgr`: accounts, users, associations and service classes (SL-L-02, SL-L-07).

use super::{
    Ended, print, refusals,
    site::{Site, host},
    wanted,
};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId,
    views::{AccountsPage, ErrorCode},
};
use muster_slurm::{
    accounts::{Proposal, propose},
    queries::{
        Failure,
        sacctmgr::{Deed, Kind, Sacctmgr, parse},
    },
    show::{columns::FormatError, sacctmgr as tables},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{io::Write as _, os::fd::AsFd as _};

/// How often the command tries again if somebody else made changes meanwhile.
const ATTEMPTS: usize = 5;
/// How long the user has to answer a question.
const PATIENCE_MILLISECONDS: u16 = 30_000;
/// The port of Slurm's controller, for programs that ask for it.
const CONTROLLER_PORT: u16 = 6817;

/// Runs a command line of `sacctmgr`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(command) = wanted(site.tool, parse(words)?) else { return Ok(0) };
    if command.deed == Deed::Show {
        return show(site, &command);
    }
    let mut is_first = true;
    for attempt in 1.. {
        let page = page(site)?;
        let proposal = propose(&command, &page, &cluster(site)?);
        if let Some(status) = told(&command, &proposal, is_first) {
            return Ok(status);
        }
        is_first = false;
        match site.client.change_accounts(CommandId::new_now(), proposal.changes) {
            Ok(_) => break,
            Err(error) if error.to_string().contains("has been changed meanwhile") && attempt < ATTEMPTS => {}
            Err(error) => return Err(refused(site, &error)),
        }
    }
    Ok(0)
}

fn page(site: &mut Site) -> Result<AccountsPage, Failure> {
    site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))
}

fn cluster(site: &mut Site) -> Result<String, Failure> {
    Ok(site.client.config(Moment::Now).map_err(|error| site.failure(&error))?.settings.name)
}

/// Prints the proposed changes and asks for confirmation. Returns the exit status if nothing is left to do.
fn told(command: &Sacctmgr, proposal: &Proposal, is_first: bool) -> Option<u8> {
    if !is_first {
        return proposal.changes.is_empty().then_some(0);
    }
    let asks = !command.immediate;
    let whether_all = "You didn't set any conditions with 'WHERE'.\nAre you sure you want to continue?";
    if proposal.is_of_all && proposal.errors.is_empty() && asks && !confirms(whether_all) {
        print("Aborted\n");
        return Some(0);
    }
    print(&proposal.said);
    proposal.errors.iter().for_each(|error| stderr_line!("{error}"));
    refusals::remember(&proposal.errors);
    if proposal.changes.is_empty() {
        // It may be the case already.
        let is_done = proposal.errors.is_empty() && proposal.said.contains("Modified");
        return Some(u8::from(!is_done));
    }
    if asks && !confirms("Would you like to commit changes?") {
        print(" Changes Discarded\n");
        return Some(0);
    }
    None
}

fn refused(site: &Site, error: &ClientError) -> Failure {
    let text = error.to_string();
    match error.code() {
        None => site.failure(error),
        Some(ErrorCode::PermissionDenied) => Failure::plain(" Error with request: Access/permission denied"),
        Some(ErrorCode::Conflict) if text.contains(" is in it") => {
            let text = format!(" Error with request: Job(s) active, cancel job(s) before remove\n  {text}");
            Failure::plain(text)
        }
        Some(_) => Failure::plain(format_args!(" Error with request: {text}")),
    }
}

/// Asks on the terminal; no answer means no.
fn confirms(question: &str) -> bool {
    print(&format!("{question} (You have 30 seconds to decide)\n"));
    loop {
        let mut out = std::io::stdout();
        let _ = out.write_all(b"(N/y): ").and_then(|()| out.flush());
        let input = std::io::stdin();
        let mut asked = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        if !poll(&mut asked, PollTimeout::from(PATIENCE_MILLISECONDS)).is_ok_and(|ready| ready > 0) {
            print("timeout\n");
            return false;
        }
        let answer = line();
        print("\n");
        match answer.first() {
            Some(b'y' | b'Y') => return true,
            Some(b'n' | b'N' | b'\n') | None => return false,
            Some(_) => print("Y or N please\n"),
        }
    }
}

/// A line of the input with its end, read without a buffer, because the next question needs the rest of the input.
fn line() -> Vec<u8> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.last() != Some(&b'\n') && nix::unistd::read(std::io::stdin(), &mut byte) == Ok(1) {
        line.push(byte[0]);
    }
    line
}

fn show(site: &mut Site, command: &Sacctmgr) -> Ended {
    let Sacctmgr { kind, format, style, no_header, .. } = command;
    let format = format.as_deref();
    let clock = site.clock.clone();
    let page = page(site)?;
    let config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let is_meant = |key: &str, value: &str| command.takes(key, value);
    let text = match kind {
        Kind::Account => {
            let mut rows = tables::accounts(&page);
            rows.retain(|row| is_meant("account", &row.0.name));
            tables::list(&rows, format, style, *no_header, &clock)
        }
        Kind::User => {
            let mut rows = tables::users(&page, &config.settings);
            rows.retain(|row| is_meant("user", &row.name) && is_meant("defaultaccount", &row.default_account));
            tables::list(&rows, format, style, *no_header, &clock)
        }
        Kind::Qos => {
            let mut rows = tables::classes(&page);
            rows.retain(|row| is_meant("name", &row.0.name));
            tables::list(&rows, format, style, *no_header, &clock)
        }
        Kind::Association => {
            let mut rows = tables::associations(&page, &config.settings.name);
            rows.retain(|row| {
                let of = &row.spec.of;
                is_meant("account", &of.account)
                    && is_meant("user", of.user.as_deref().unwrap_or_default())
                    && is_meant("partition", of.queue.as_deref().unwrap_or_default())
                    && is_meant("cluster", &row.cluster)
            });
            tables::list(&rows, format, style, *no_header, &clock)
        }
        Kind::Cluster => {
            let row = tables::Cluster { name: config.settings.name, host: host(), port: CONTROLLER_PORT };
            let rows: Vec<_> = [row].into_iter().filter(|row| is_meant("cluster", &row.name)).collect();
            tables::list(&rows, format, style, *no_header, &clock)
        }
    };
    let no_column = |FormatError(name)| Failure::plain(format_args!(" Unknown field '{name}'"));
    print(&text.map_err(no_column)?);
    Ok(0)
}
