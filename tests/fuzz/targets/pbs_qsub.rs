//! Requests of `qsub -l`, and the job that they describe.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_pbs::{
    flavour::Flavour,
    resources::{NodesSpec, Place, Select, parse},
    script,
    submit::{self, Caller, Program, Reading, Rules, Settings},
};

fuzz_target!(|text: &str| {
    for resource in parse(text).into_iter().flatten() {
        let plain = resource.plain();
        let _ = (NodesSpec::parse(&plain), Place::parse(&plain), Select::parse(&plain));
    }
    let now: jiff::Zoned = "2026-11-20T10:00:00[UTC]".parse().expect("a time");
    let caller = Caller {
        user: "ann".into(),
        groups: vec!["staff".into()],
        home: "/home/ann".into(),
        shell: "/bin/sh".into(),
        directory: "/tmp".into(),
        environment: Vec::new(),
        host: "login1".into(),
        arguments: String::new(),
        is_folder: |_| false,
    };
    let job = format!("#!/bin/sh\n#PBS -l {text}\ntrue\n");
    for flavour in [Flavour::PbsPro, Flavour::Torque] {
        let rules = Rules { flavour, server: "pbs1".into(), ..Rules::default() };
        let reading = Reading { now: &now, flavour, array_limit: 10_001 };
        let Ok(settings) = Settings::read(&[], Some(&job), script::prefix(None, None), &[], &reading) else { continue };
        let program = Program::Script { text: job.clone(), path: None };
        let _ = submit::lower(&settings, &program, &caller, &rules, &now);
    }
});
