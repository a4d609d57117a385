//! Agents that ask one gateway for their orders, each with a connection of its own for each question, as `muster agent` does.

use super::{
    Bench,
    figure::{Figure, Target, quantile},
};
use crate::http::{Connection, Endpoint};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use muster_schemas::agent::{AgentOrders, AgentPull, PERIOD_SECONDS};
use std::{
    fmt::Write as _,
    net::TcpListener,
    time::{Duration, Instant},
};

/// Agents.
const AGENTS: usize = 10_000;
/// The most questions on their way.
const AT_A_TIME: usize = 256;
/// The unit of processor time that Linux tells programs of, whatever its own clock does.
const TICK_MILLIS: u64 = 10;
/// Periods that are measured, after one in which all come up.
const PERIODS: u32 = 2;

/// 10,000 agents, each of which asks every 30 s.
pub async fn agents(bench: &Bench) -> Result<Vec<Figure>> {
    let agents = bench.count(AGENTS);
    let folder = bench.folder()?;
    let mut lines = String::new();
    for number in 1..=agents {
        writeln!(lines, "{} far{number}", blake3::hash(token(number).as_bytes()).to_hex())?;
    }
    let file = folder.path().join("agents");
    std::fs::write(&file, lines)?;
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    let authority = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let config = format!(
        "[gateway]\nlisten = \"{authority}\"\nagents_file = \"{}\"\n[[queues]]\nname = \"default\"\n\
         [[nodes]]\nname = \"far[1-{agents}]\"\ncores = 1\nmemory = \"1G\"\nproperties = {{ pull = true }}\n",
        file.display()
    );
    let running = bench.start_with(1, 1, &config)?;
    let period = Duration::from_secs(PERIOD_SECONDS.into());
    turn(&authority, agents, period).await?;
    let (mut times, mut lost) = (Vec::new(), 0);
    let pid = running.system.pid();
    let used_before = processor_time(pid)?;
    let began = Instant::now();
    for _ in 0..PERIODS {
        for answer in turn(&authority, agents, period).await? {
            match answer {
                Some(time) => times.push(time),
                None => lost += 1,
            }
        }
    }
    let elapsed = began.elapsed();
    let used = processor_time(pid)?.saturating_sub(used_before);
    running.system.stop()?;
    let of = format!("{agents} agents, each every {PERIOD_SECONDS} s");
    let wanted = agents as f64 / period.as_secs_f64();
    let answered = times.len();
    Ok(vec![
        Figure::rate(format!("questions answered, {of}"), answered, elapsed, "1/s", wanted * 0.9),
        Figure {
            measure: format!("processor time of the whole system with them, as a part of one core, {of}"),
            value: used.as_secs_f64() / elapsed.as_secs_f64() * 100.0,
            unit: "%",
            target: Target::AtMost(25.0),
        },
        Figure {
            measure: "those without an answer".into(),
            value: f64::from(lost),
            unit: "",
            target: Target::AtMost(0.0),
        },
        Figure::time("a question of an agent, p50", quantile(&mut times, 0.5), 50.0),
        Figure::time("a question of an agent, p99", quantile(&mut times, 0.99), 500.0),
    ])
}

/// The processor time that a process has used, with all its threads. Processes that it has started do not count.
fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name, in parentheses, can contain anything; after it the 12th and the 13th field are the times, in ticks.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).with_context(|| path.clone())?;
    let ticks = fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>().with_context(|| path.clone())?;
    Ok(Duration::from_millis(ticks * TICK_MILLIS))
}

fn token(number: usize) -> String {
    format!("the-token-of-agent-{number}")
}

/// Each agent asks once, evenly over a period. Returns how long each answer took.
async fn turn(authority: &str, agents: usize, period: Duration) -> Result<Vec<Option<Duration>>> {
    let began = tokio::time::Instant::now();
    let step = period.div_f64(agents.max(1) as f64);
    let asked = stream::iter(1..=agents).map(|number| async move {
        tokio::time::sleep_until(began + step * u32::try_from(number).unwrap_or(u32::MAX)).await;
        let asked = Instant::now();
        match ask(authority, number).await {
            Ok(()) => Some(asked.elapsed()),
            Err(error) => {
                eprintln!("agent {number}: {error:#}");
                None
            }
        }
    });
    Ok(asked.buffer_unordered(AT_A_TIME).collect().await)
}

async fn ask(authority: &str, number: usize) -> Result<()> {
    let pull = AgentPull {
        host: format!("far{number}"),
        boot_id: "boot".to_owned(),
        is_leaving: false,
        cores: 1,
        memory_bytes: 1 << 30,
        parts: Vec::new(),
        highest_run: None,
        as_of: None,
    };
    let endpoint = Endpoint::Tcp { authority: authority.to_owned(), token: Some(token(number)) };
    let mut connection = Connection::open(&endpoint).await?;
    let answer = connection.post("/v1/agent/pull", Bytes::from(serde_json::to_vec(&pull)?)).await?;
    serde_json::from_slice::<AgentOrders>(&answer).context("the answer is not one for agents")?;
    Ok(())
}
