//! `sacctmgr`: accounts, users, associations and service classes (SL-L-02, SL-L-07).

use super::{
    Ended,
    control::{CONTROLLER_PORT, enforced},
    print, refusals, shown,
    site::{Site, host},
    wanted,
};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId, Sequence,
    cluster::{ClusterChange, ClusterSettingsChange},
    views::{AccountsPage, ErrorCode},
};
use muster_slurm::{
    accounts::{AdminLevel, Proposal, ROOT, propose},
    queries::{
        Failure,
        sacctmgr::{Deed, Kind, Sacctmgr, parse},
    },
    show::{
        columns::FormatError,
        sacctmgr::{self as tables, AsData},
        sinfo::NodeRecord,
    },
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{collections::BTreeMap, io::Write as _, os::fd::AsFd as _, sync::Arc};

/// How often the command tries again if somebody else made changes meanwhile.
const ATTEMPTS: usize = 5;
/// How long the user has to answer a question.
const PATIENCE_MILLISECONDS: u16 = 30_000;

/// Runs a command line of `sacctmgr`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(command) = wanted(site, parse(words)?) else { return Ok(0) };
    if command.deed == Deed::Show {
        return show(site, &command, words);
    }
    let mut is_first = true;
    for attempt in 1.. {
        let page = page(site)?;
        let proposal = propose(&command, &page, &cluster(site)?);
        if let Some(status) = told(&command, &proposal, is_first) {
            return Ok(status);
        }
        is_first = false;
        let Proposal { changes, levels, .. } = proposal;
        if changes.is_empty() {
            return give_levels(site, &levels);
        }
        match site.client.change_accounts(CommandId::new_now(), changes) {
            Ok(_) => return give_levels(site, &levels),
            Err(error) if error.to_string().contains("has been changed meanwhile") && attempt < ATTEMPTS => {}
            Err(error) => return Err(refused(site, &error)),
        }
    }
    Ok(0)
}

/// Makes users operators or administrators of the cluster, or neither.
fn give_levels(site: &mut Site, levels: &[(String, AdminLevel)]) -> Ended {
    if levels.is_empty() {
        return Ok(0);
    }
    let settings = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?.settings;
    let with = |before: &[String], wanted: AdminLevel| {
        let is_meant = |name: &&String| !levels.iter().any(|(user, _)| user == *name);
        let others = before.iter().filter(is_meant).cloned();
        let own = levels.iter().filter(|(_, level)| *level == wanted).map(|(user, _)| user.clone());
        let after: Vec<String> = others.chain(own).collect();
        (after != before).then_some(after)
    };
    let change = ClusterSettingsChange {
        operators: with(&settings.operators, AdminLevel::Operator),
        administrators: with(&settings.administrators, AdminLevel::Administrator),
        ..ClusterSettingsChange::default()
    };
    if change == ClusterSettingsChange::default() {
        return Ok(0);
    }
    let change = ClusterChange { settings: change, ..ClusterChange::default() };
    let done = site.client.configure(CommandId::new_now(), &change, true);
    done.map(|_| 0).map_err(|error| refused(site, &error))
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
        return proposal.is_empty().then_some(0);
    }
    let asks = !command.immediate;
    let whether_all = "You didn't set any conditions with 'WHERE'.\nAre you sure you want to continue?";
    if proposal.is_of_all && proposal.errors.is_empty() && asks && !confirms(whether_all) {
        print("Aborted\n");
        return Some(0);
    }
    if !command.quiet {
        print(&proposal.said);
    }
    proposal.errors.iter().for_each(|error| stderr_line!("{error}"));
    refusals::remember(&proposal.errors);
    if proposal.is_empty() {
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

fn show(site: &mut Site, command: &Sacctmgr, words: &[String]) -> Ended {
    let text = match command.kind {
        Kind::Account | Kind::Association | Kind::Cluster | Kind::Qos | Kind::User => {
            of_accounts(site, command, words)?
        }
        Kind::Tres => {
            let of_id = |row: &tables::Tres| command.takes("id", &row.id.to_string());
            let mut rows = tables::TRES.to_vec();
            rows.retain(|row| command.takes("type", row.kind) && of_id(row));
            shown_rows(site, (command, words), &rows, &[])?
        }
        // As in Slurm they are shown with their accounts and users.
        Kind::Coordinator => return Err(Failure::plain(" No valid entity in show command: coordinator")),
        _ if command.data.is_some() => {
            let text = "--json and --yaml are for accounts, associations, clusters, QOS, TRES and users";
            return Err(Failure::error("sacctmgr", text));
        }
        Kind::Configuration => configuration(site)?,
        Kind::Event => outages(site, command)?,
        // The log is the only record of jobs, so there is no other that could differ from it.
        Kind::Runaway => format!("Runaway Jobs: No runaway jobs found on cluster {}\n", cluster(site)?),
        Kind::Statistics => statistics(site)?,
        Kind::Transaction => transactions(site, command)?,
    };
    print(&text);
    Ok(0)
}

/// A table with the columns that are asked for.
fn listed<R: tables::Listed>(site: &Site, command: &Sacctmgr, rows: &[R]) -> Result<String, Failure> {
    let usual = if command.with_associations { [R::USUAL, R::WITH_ASSOCIATIONS].concat() } else { R::USUAL.to_owned() };
    let format = command.format.as_deref().unwrap_or(&usual);
    let no_column = |FormatError(name)| Failure::plain(format_args!(" Unknown field '{name}'"));
    tables::list(rows, format, &command.style, command.no_header, &site.clock).map_err(no_column)
}

/// Rows as a table, or as data for programs, in which `with` are their associations.
fn shown_rows<R: tables::Listed + AsData>(
    site: &mut Site,
    (command, words): (&Sacctmgr, &[String]),
    rows: &[R],
    with: &[tables::Association],
) -> Result<String, Failure> {
    match command.data {
        None => listed(site, command, rows),
        Some(format) => {
            let list = rows.iter().map(|row| row.data(with)).collect();
            site.with_asker(words, |asker, _| format.text(&asker.document(R::LIST, list, &[])))
        }
    }
}

fn of_accounts(site: &mut Site, command: &Sacctmgr, words: &[String]) -> Result<String, Failure> {
    let page = page(site)?;
    let config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let name = config.settings.name.as_str();
    let is_here = command.takes("cluster", name);
    let is_meant = |key: &str, value: &str| is_here && command.takes(key, value);
    let asked = (command, words);
    let mut with = if command.with_associations { tables::associations(&page, name) } else { Vec::new() };
    if command.only_defaults {
        with.retain(|one| is_default(&page, one));
    }
    // In data the associations are inside of what they belong to.
    let beside: &[tables::Association] = if command.data.is_some() { &[] } else { &with };
    match command.kind {
        Kind::Account => {
            let mut rows = tables::accounts(&page);
            rows.retain(|row| {
                let spec = &row.spec;
                is_meant("account", &spec.name)
                    && command.takes("description", &spec.description)
                    && command.takes("organization", &spec.organisation)
                    && command.takes("parent", spec.parent.as_deref().unwrap_or(ROOT))
            });
            let mut rows = tables::with_associations(rows, beside);
            rows.retain(|row| {
                let user = row.association.as_ref().and_then(|one| one.spec.of.user.as_deref());
                !command.with_associations || command.takes("user", user.unwrap_or_default())
            });
            shown_rows(site, asked, &rows, &with)
        }
        Kind::User => {
            let mut rows = tables::users(&page, &config.settings);
            rows.retain(|row| {
                is_meant("user", &row.name)
                    && command.takes("defaultaccount", &row.default_account)
                    && command.takes("adminlevel", row.admin)
            });
            let mut rows = tables::with_associations(rows, beside);
            let is_wanted = |one: &tables::Association| {
                let of = &one.spec.of;
                command.takes("account", &of.account)
                    && command.takes("partition", of.queue.as_deref().unwrap_or_default())
            };
            rows.retain(|row| row.association.as_ref().is_none_or(is_wanted));
            shown_rows(site, asked, &rows, &with)
        }
        Kind::Qos => {
            let mut rows = tables::classes(&page);
            rows.retain(|row| is_meant("name", &row.0.name));
            shown_rows(site, asked, &rows, &[])
        }
        Kind::Cluster => {
            let row = tables::Cluster { name: name.to_owned(), host: host(), port: CONTROLLER_PORT };
            let rows: Vec<_> = [row].into_iter().filter(|_| is_here).collect();
            shown_rows(site, asked, &rows, &[])
        }
        _ => {
            let mut rows = tables::associations(&page, name);
            rows.retain(|row| {
                let of = &row.spec.of;
                is_meant("account", &of.account)
                    && command.takes("user", of.user.as_deref().unwrap_or_default())
                    && command.takes("partition", of.queue.as_deref().unwrap_or_default())
                    && command.takes("parent", &row.parent)
                    && (!command.only_defaults || is_default(&page, row))
            });
            if command.tree && command.data.is_none() {
                tables::indent(&mut rows, &page);
            }
            shown_rows(site, asked, &rows, &[])
        }
    }
}

/// Whether an association is in the default account of its user.
fn is_default(page: &AccountsPage, one: &tables::Association) -> bool {
    let of = &one.spec.of;
    let is_its =
        |user: &&str| page.users.iter().any(|known| known.name == **user && known.default_account == of.account);
    of.user.as_deref().filter(is_its).is_some()
}

/// The nodes that are out of service now: Slurm lists these whenever they went.
fn outages(site: &mut Site, command: &Sacctmgr) -> Result<String, Failure> {
    let end = command.period_end(&site.clock.now.to_jiff().to_zoned(site.clock.zone.clone()))?;
    let cluster = cluster(site)?;
    let nodes = shown::nodes(site)?;
    let is_out = |node: &&Arc<NodeRecord>| {
        !node.state.serves()
            && end.is_none_or(|end| node.reason_time.is_none_or(|begin| begin < end))
            && command.takes("nodes", &node.name)
            && command.takes("user", node.reason_user.as_deref().unwrap_or_default())
            && command.takes("reason", node.reason.as_deref().unwrap_or_default())
            && is_in_a_state(command, &node.state.flags())
    };
    let row = |node: &Arc<NodeRecord>| tables::Outage { cluster: cluster.clone(), node: NodeRecord::clone(node) };
    let rows: Vec<_> = nodes.iter().filter(is_out).map(row).collect();
    listed(site, command, &rows)
}

/// Whether the flags of a node, such as `IDLE+DRAIN`, hold one of the states that are asked for.
fn is_in_a_state(command: &Sacctmgr, flags: &str) -> bool {
    let flags = flags.to_lowercase();
    command.states().all(|list| list.to_lowercase().split(',').any(|state| flags.contains(state)))
}

/// All changes of accounts, from the log.
fn transactions(site: &mut Site, command: &Sacctmgr) -> Result<String, Failure> {
    let kinds = ["accounts.changed".to_owned()];
    let mut events = site.client.events(Some(Sequence(1)), None, &kinds).map_err(|error| site.failure(&error))?;
    let mut rows = Vec::new();
    while let Some(event) = events.next_until_caught_up().map_err(|error| site.failure(&error))? {
        rows.extend(tables::transactions(&event.json));
    }
    rows.retain(|row| command.takes("action", row.action) && command.takes("actor", &row.actor));
    listed(site, command, &rows)
}

/// There is no database, so the times of the gateway stand for its own.
fn statistics(site: &mut Site) -> Result<String, Failure> {
    let since = site.client.statistics().map_err(|error| site.failure(&error))?.since;
    Ok(tables::statistics(since, &site.clock))
}

fn configuration(site: &mut Site) -> Result<String, Failure> {
    let shown = site.shown()?;
    let config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let enforced = enforced(config.accounts.as_ref());
    let values: BTreeMap<&str, String> = [
        ("AccountingStorageEnforce", enforced),
        ("AccountingStorageHost", host()),
        ("AccountingStorageType", shown.accounting),
        ("AccountingStorageUser", "root".to_owned()),
        ("ClusterName", config.settings.name),
        ("SLURM_VERSION", shown.version),
        ("TrackWCKey", "No".to_owned()),
    ]
    .into();
    Ok(tables::configuration(&values, &site.clock))
}
