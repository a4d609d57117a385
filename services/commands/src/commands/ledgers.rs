//! `muster ledgers`: the ledgers that keep one history.

use crate::{
    cli::{ConnectionOptions, LedgersCommand, LedgersOptions},
    exit::{CommandResult, Failure},
    show::{self, local_time_column},
    table::{Table, left, right},
    terminal::waiting,
};
use jiff::tz::TimeZone;
use muster_client::Client;
use muster_schemas::{
    CommandId,
    ledgers::{HandOverRequest, LedgerRole, LedgerView, LedgersPage},
};
use std::time::{Duration, Instant};

/// How long another ledger may take to lead.
const LEADS_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs the command.
pub fn run(connection: &ConnectionOptions, options: &LedgersOptions) -> CommandResult {
    let mut client = connection.client()?;
    match &options.command {
        None => list(&mut client, options.json)?,
        Some(LedgersCommand::HandOver { ledger }) => hand_over(&mut client, ledger.clone())?,
    }
    Ok(0)
}

fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    let page = client.ledgers()?;
    if json {
        return Ok(show::print_json(&page)?);
    }
    Ok(show::print_or_say(&table(&page), "the cluster has one ledger without others")?)
}

fn table(page: &LedgersPage) -> Table {
    let mut table =
        Table::new([left("LEDGER"), left("ROLE"), right("EPOCH"), right("LAST"), right("LAG"), left("REPORTED")]);
    for ledger in &page.ledgers {
        table.push([
            (&ledger.name).into(),
            ledger.role.word().into(),
            ledger.epoch.to_string().into(),
            ledger.last.to_string().into(),
            ledger.lag.map(|lag| lag.to_string()).unwrap_or_default().into(),
            local_time_column(ledger.reported, &TimeZone::system()).into(),
        ]);
    }
    table
}

fn hand_over(client: &mut Client, to: Option<String>) -> Result<(), Failure> {
    let before = client.ledgers()?.ledgers.iter().map(|ledger| ledger.epoch).max().unwrap_or(0);
    client.hand_over(CommandId::new_now(), &HandOverRequest { to })?;
    let leader = waiting("handing over", || next_leader(client, before))?;
    println!("{} leads, in epoch {}", leader.name, leader.epoch);
    Ok(())
}

/// The ledger that leads in a later epoch, once it says so.
fn next_leader(client: &mut Client, before: u64) -> Result<LedgerView, Failure> {
    let begun = Instant::now();
    loop {
        let leads = |ledger: &LedgerView| ledger.role == LedgerRole::Leader && ledger.epoch > before;
        if let Some(leader) = client.ledgers()?.ledgers.into_iter().find(leads) {
            return Ok(leader);
        }
        if begun.elapsed() > LEADS_WITHIN {
            return Err(Failure::failed(
                "the ledger has handed over, and no other one has said yet that it leads: `muster ledgers` shows them",
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
