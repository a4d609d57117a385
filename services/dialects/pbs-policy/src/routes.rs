//! The presets as settings of the planner (PBS-P-01): tables in, a policy out.
//!
//! A preset is planning by turns with routes. Its options are stages of the one pipeline: the order of the list, the
//! gates in front of each queue, room counted in nodes, and reservations.

mod orders;
mod site;

pub use orders::{BACKGROUND, BASE, PAST_USAGE, SPECIAL, base_of, standing};
pub use site::{Host, Site};

use crate::{
    check::Policy as Tables,
    engine::{self, Limits, micros},
    outages::short_name,
    preset::{BackfillMode, Enforced, Preset, PresetConfig, QueueName},
    prime,
};
use jiff::Timestamp as Instant;
use muster_schemas::policy::{
    Backfill, Limit, MOST_STARTS, OtherHours, Period, Policy, TurnRules, Turns, Visit,
    routes::{
        EarlyEnd, HourRules, LoadBand, LoadPercent, LongWait, Machine, Owners, Reservations, Routes, SizeLimits,
        SizePart, Source, Target, TargetHours,
    },
};
use std::collections::BTreeMap;

/// The longest walltime of a short job, and the charges of short and of other jobs (PBS-P-09).
const OWNERS: Owners = Owners {
    short_seconds: 1200,
    short_charge: 1,
    charge: 10,
    left_after_day_millionths: None,
    over_left_after_day_millionths: None,
    only_counts: false,
};

/// The policy of the planner.
pub fn policy(config: &PresetConfig, tables: &Tables, site: &Site) -> Policy {
    let translation = Translation { config, site };
    let range = &site.range;
    let stale = tables.sched_config.holidays_stale;
    let periods = prime::non_prime_periods(config, &tables.holidays, stale, (range.from, range.until), &range.zone);
    let units = translation.units_of_machine();
    let pool = TurnRules { visit: Visit::Pool, ..TurnRules::default() };
    let other_hours = OtherHours {
        periods: periods.into_iter().map(|(from, until)| Period { from: micros(from), until: micros(until) }).collect(),
        order: orders::order(config, false, units),
        rules: pool.clone(),
    };
    let turns = Turns {
        rules: pool,
        other_hours: Some(other_hours),
        queues: site.queues.iter().map(|(name, _)| name.clone()).collect(),
        routes: Some(Box::new(translation.routes())),
        hidden_log_classes: Some(tables.sched_config.log_filter.sum()),
        ..Turns::default()
    };
    Policy {
        name: config.preset.name().into(),
        order: orders::order(config, true, units),
        backfill: Backfill::default(),
        limits: translation.limits(tables),
        queues: BTreeMap::new(),
        max_starts: MOST_STARTS,
        turns: Some(Box::new(turns)),
        ..Policy::default()
    }
}

struct Translation<'t> {
    config: &'t PresetConfig,
    site: &'t Site,
}

impl Translation<'_> {
    fn is(&self, presets: &[Preset]) -> bool {
        presets.contains(&self.config.preset)
    }

    fn routes(&self) -> Routes {
        let config = self.config;
        Routes {
            sources: self.sources(),
            targets: self.targets(),
            machines: self.machines(),
            whole_nodes: self.site.whole_nodes.filter(|_| self.is(&[Preset::IbmSp])),
            size: self.size(),
            size_limits: (config.small_job_max > 0).then_some(SizeLimits {
                small_units: config.small_job_max,
                small_seconds: above_0(config.walltime_limit_small_job),
                large_seconds: above_0(config.walltime_limit_large_job),
            }),
            long_wait: (!self.is(&[Preset::Multitask])).then_some(LongWait {
                after_seconds: above_0(config.max_queued_time),
                interactive_after_seconds: above_0(config.interactive_long_wait),
                long_seconds: config.small_queued_time,
            }),
            ranks_first: self.is(&[Preset::SgiOrigin, Preset::IbmSp]),
            // In `cray_t3e` the use is a part of the priority, and nobody takes turns.
            owners: (self.is(&[Preset::SgiOrigin, Preset::CrayT3e]) && config.sort_by_past_usage).then_some(Owners {
                only_counts: self.is(&[Preset::CrayT3e]),
                left_after_day_millionths: u32::try_from(config.decay_factor.millionths()).ok(),
                over_left_after_day_millionths: u32::try_from(config.over_allocation_decay_factor.millionths())
                    .ok()
                    .filter(|_| !self.site.over_allocation.is_empty()),
                ..OWNERS
            }),
            hours: self.hours(),
            load: self.load(),
            avoids_fragments: self.is(&[Preset::SgiOrigin, Preset::CrayT3e]) && config.avoid_fragmentation,
            enforces_allocations: config.enforce_allocation.holds(self.site.now, &self.site.range.zone),
            reservations: match config.backfill_mode {
                _ if self.is(&[Preset::Multitask]) => Reservations::None,
                BackfillMode::None => Reservations::None,
                BackfillMode::Static => Reservations::Kept,
                BackfillMode::Dynamic => Reservations::Renewed,
            },
            over_allocation: self.site.over_allocation.clone(),
        }
    }

    /// The queues whose jobs are one list (PBS-P-05, PBS-P-21).
    fn sources(&self) -> Vec<Source> {
        let config = self.config;
        let of_option = |queue: &Option<QueueName>| queue.as_ref().map(|queue| queue.queue.clone());
        let names = [
            of_option(&config.submit_queue),
            of_option(&config.special_queue),
            config.challenge_queue.clone(),
            config.background_queue.clone(),
        ];
        let mut sources: Vec<Source> = Vec::new();
        for queue in names.into_iter().flatten() {
            if sources.iter().all(|source| source.queue != queue) {
                let base = if self.is(&[Preset::CrayT3e]) { base_of(config, &queue) } else { 0 };
                sources.push(Source { standing: standing(config, &queue), base, queue });
            }
        }
        sources
    }

    fn targets(&self) -> Vec<Target> {
        let config = self.config;
        if self.is(&[Preset::Multitask]) {
            return self.targets_of_hours();
        }
        let of_list = config.batch_queues.iter().map(|queue| self.target(queue));
        let in_place = |queue| Target { in_place: true, ..self.target(queue) };
        let external = config.external_queues.iter().map(in_place);
        let dedicated = config.dedicated_queues.iter().map(|queue| Target { in_outages: true, ..in_place(queue) });
        let sources = self.sources();
        let mut targets: Vec<Target> = Vec::new();
        for target in of_list.chain(external).chain(dedicated) {
            let is_known = targets.iter().any(|known| known.queue == target.queue);
            let is_source = target.in_place && sources.iter().any(|source| source.queue == target.queue);
            if !is_known && !is_source {
                targets.push(target);
            }
        }
        targets
    }

    /// Queues with their own jobs, in prime time and otherwise (PBS-P-22).
    fn targets_of_hours(&self) -> Vec<Target> {
        let config = self.config;
        let with = |queue, hours| Target { in_place: true, hours, ..self.target(queue) };
        let usual = config.interactive_queues.iter().map(|queue| with(queue, TargetHours::Usual));
        let mut targets: Vec<Target> = Vec::new();
        for target in usual.chain(config.batch_queues.iter().map(|queue| with(queue, TargetHours::Other))) {
            match targets.iter_mut().find(|known| known.queue == target.queue) {
                Some(known) if known.hours != target.hours => known.hours = TargetHours::All,
                Some(_) => {}
                None => targets.push(target),
            }
        }
        targets
    }

    fn target(&self, queue: &QueueName) -> Target {
        let own = self.site.queue(&queue.queue);
        Target {
            queue: queue.queue.clone(),
            in_place: false,
            units: own.and_then(|own| self.units(&own.resources_max)),
            walltime_seconds: own.and_then(|own| own.resources_max.get("walltime").copied()),
            max_running: own.and_then(|own| own.max_running),
            machine: Some(self.site.machine_of(queue)),
            in_outages: false,
            hours: TargetHours::All,
        }
    }

    /// The machines of all targets, with the outages of the system in addition to their own (PBS-P-14).
    fn machines(&self) -> Vec<Machine> {
        let mut names: Vec<String> = self.targets().into_iter().filter_map(|target| target.machine).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| self.machine(name)).collect()
    }

    fn machine(&self, name: String) -> Machine {
        let host = self.site.hosts.get(&name);
        let is_enforced = self.config.enforce_dedicated_time.holds(self.site.now, &self.site.range.zone);
        let system = self.config.system_name.as_deref().map(short_name);
        let own = self.site.outages_of(&name);
        let of_system = system.as_deref().map(|system| self.site.outages_of(system));
        let all = of_system.into_iter().chain([own]);
        let is_in_doubt = is_enforced && all.clone().any(|outages| outages.is_none());
        let memory = host.filter(|_| self.is(&[Preset::Multitask])).and_then(|host| host.memory_kilobytes);
        let multiplier = u64::from(self.config.fake_machine_multiplier);
        // Nodes with numbers are those that there are, whatever the multiplier.
        let numbered = host.filter(|_| self.is(&[Preset::SgiOrigin])).and_then(|host| host.nodes);
        let units = host.filter(|_| self.is(&[Preset::SgiOrigin, Preset::CrayT3e])).map(|host| {
            let cpus = if self.is(&[Preset::CrayT3e]) { 1 } else { u64::from(self.config.node_cpus.max(1)) };
            let of_processors = || limited(u64::from(host.processors) / cpus * multiplier);
            numbered.unwrap_or_else(of_processors)
        });
        Machine {
            units,
            is_numbered: numbered.is_some(),
            max_attributes: memory
                .map(|most| (engine::attribute("mem").to_owned(), most.saturating_mul(multiplier)))
                .into_iter()
                .collect(),
            outages: if is_enforced {
                self.site.joined(all.flatten().flat_map(|one| one.periods.clone()))
            } else {
                Vec::new()
            },
            is_in_doubt,
            name,
        }
    }

    /// The size of a job in nodes (PBS-P-04).
    fn size(&self) -> Vec<SizePart> {
        let part = |resource: &str, per_unit: u64| SizePart {
            attribute: engine::attribute(resource).to_owned(),
            per_unit: per_unit.max(1),
        };
        match self.config.preset {
            Preset::SgiOrigin => {
                vec![part("ncpus", self.config.node_cpus.into()), part("mem", self.config.node_memory_kilobytes)]
            }
            Preset::CrayT3e => vec![part("ncpus", 1)],
            Preset::IbmSp => vec![part("nodect", 1)],
            Preset::Multitask => Vec::new(),
        }
    }

    /// The capacity of a queue in nodes, from its resources in the same way.
    fn units(&self, resources: &BTreeMap<String, u64>) -> Option<u32> {
        let parts = self.size();
        let units = parts
            .iter()
            .filter_map(|part| Some(resources.get(engine::resource(&part.attribute))?.div_ceil(part.per_unit)));
        units.max().map(|units| limited(units.saturating_mul(u64::from(self.config.fake_machine_multiplier))))
    }

    /// The number of processors of the whole machine (PBS-P-21).
    fn units_of_machine(&self) -> u64 {
        let hosts: u64 = self.site.hosts.values().map(|host| u64::from(host.processors)).sum();
        let server = &self.site.server;
        let of_server = server.resources_available.get("ncpus").or(server.resources_max.get("ncpus")).copied();
        let queues = self
            .config
            .batch_queues
            .iter()
            .filter_map(|queue| self.site.queue(&queue.queue)?.resources_max.get("ncpus").copied());
        let all =
            of_server.or(Some(hosts).filter(|hosts| *hosts > 0)).unwrap_or_else(|| queues.fold(0, u64::saturating_add));
        all.saturating_mul(u64::from(self.config.fake_machine_multiplier)).max(1)
    }

    fn hours(&self) -> Option<HourRules> {
        let config = self.config;
        let early_end = (config.nonprime_drain_backtime > 0).then_some(EarlyEnd {
            within_seconds: config.nonprime_drain_backtime,
            idle_seconds: config.nonprime_drain_idletime,
        });
        (config.enforce_prime_time != Enforced::Never).then_some(HourRules {
            limit_seconds: above_0(config.prime_time_walltime_limit),
            small_units: config.prime_time_small_node_limit,
            small_limit_seconds: above_0(config.prime_time_small_walltime_limit),
            drains: config.nonprime_drain_system,
            early_end,
        })
    }

    /// The load that machines may have (PBS-P-13).
    fn load(&self) -> Option<LoadBand> {
        let config = self.config;
        let variance = config.target_load_variance;
        let percent = LoadPercent {
            low: config.target_load_percent.saturating_sub(variance.minus),
            target: config.target_load_percent,
            high: config.target_load_percent.saturating_add(variance.plus),
        };
        (!self.is(&[Preset::IbmSp])).then_some(LoadBand {
            min_jobs: config.min_jobs,
            max_jobs: (config.max_jobs > 0).then_some(config.max_jobs),
            percent: self.is(&[Preset::SgiOrigin, Preset::Multitask]).then_some(percent),
            high_system_percent: (config.high_system_time_percent > 0).then_some(config.high_system_time_percent),
        })
    }

    /// Limits of server and queues, with those of the preset on running jobs. `resources_max` is the capacity of a
    /// queue, and no limit in addition.
    fn limits(&self, tables: &Tables) -> Vec<Limit> {
        let config = self.config;
        let own = |limits: &Limits| Limits { resources_max: BTreeMap::new(), ..limits.clone() };
        let mut server = own(&self.site.server);
        if !self.is(&[Preset::IbmSp]) {
            let most = u64::from(config.max_user_run_jobs);
            server.max_user_run = Some(server.max_user_run.map_or(most, |own| own.min(most)));
        }
        let of_queues = self.site.queues.iter().flat_map(|(name, limits)| {
            let mut limits = own(limits);
            let is_dedicated = config.dedicated_queues.iter().any(|queue| queue.queue == *name);
            if is_dedicated && config.max_dedicated_jobs > 0 {
                let most = u64::from(config.max_dedicated_jobs);
                limits.max_running = Some(limits.max_running.map_or(most, |own| own.min(most)));
            }
            engine::limits(&tables.sched_config, &limits, Some(name))
        });
        engine::limits(&tables.sched_config, &server, None).into_iter().chain(of_queues).collect()
    }
}

impl Site {
    /// Periods of local time as instants, those that overlap or touch joined, without those that are over.
    fn joined(&self, periods: impl Iterator<Item = (jiff::civil::DateTime, jiff::civil::DateTime)>) -> Vec<Period> {
        let all = crate::dedicated::DedicatedTime { periods: periods.collect() };
        let windows = all.windows(&self.range.zone);
        let period = |from: Instant, until: Instant| Period { from: micros(from), until: micros(until) };
        let all = windows.all().iter().filter(|window| window.to > self.range.from);
        all.map(|window| period(window.from, window.to)).collect()
    }
}

/// A limit that is off at 0.
fn above_0(seconds: u64) -> Option<u64> {
    Some(seconds).filter(|seconds| *seconds > 0)
}

fn limited(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}
