//! Samples of the events of accounts, service classes and refused commands.

use super::Fixture;
use muster_schemas::{
    accounts::{
        AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, Bounds, Budget, ClassSpec,
        JobBounds, Remaining, UseLimits, UserSpec,
    },
    command::RefusalCode,
    event::Event,
};
use std::sync::Arc;

fn limits() -> UseLimits {
    let bounds = Bounds {
        running_jobs: Some(1),
        jobs: Some(2),
        cores: Some(3),
        nodes: Some(4),
        gpus: Some(5),
        memory_bytes: Some(6),
    };
    UseLimits {
        together: bounds,
        each_user: Bounds { running_jobs: Some(7), ..bounds },
        each_account: Bounds { running_jobs: Some(8), ..bounds },
        each_job: JobBounds {
            cores: Some(9),
            nodes: Some(10),
            gpus: Some(11),
            memory_bytes: Some(12),
            walltime_seconds: Some(13),
        },
        budget: Budget::default(),
        remaining: Remaining::default(),
    }
}

pub fn events(fixture: &Fixture) -> Vec<Event> {
    let account = AccountSpec {
        name: "optics".into(),
        description: "light".into(),
        organisation: "physics".into(),
        parent: Some("science".into()),
        coordinators: Vec::new(),
    };
    let user = UserSpec { name: "ada".into(), default_account: "optics".into() };
    let of = AssociationKey { account: "optics".into(), user: Some("ada".into()), queue: Some("night".into()) };
    let association = AssociationSpec {
        of,
        limits: limits(),
        classes: vec!["high".into(), "normal".into()],
        default_class: Some("normal".into()),
        shares: 3,
    };
    let class = ClassSpec {
        name: "high".into(),
        description: "soon".into(),
        priority: -4,
        limits: limits(),
        refuses_hopeless: true,
        preempts: Vec::new(),
        cancels_preempted: false,
        preemption_grace_seconds: 0,
        suspends_preempted: false,
    };
    vec![
        Event::AccountsChanged {
            changes: Arc::new(vec![
                AccountChange::Account { before: None, after: Some(account) },
                AccountChange::User { before: Some(user.clone()), after: Some(user) },
                AccountChange::Association { before: Some(association), after: None },
                AccountChange::Class { before: None, after: Some(class) },
            ]),
        },
        Event::AccountSettingsChanged {
            settings: Arc::new(AccountSettings {
                associations: true,
                limits: true,
                classes: false,
                refuses_hopeless: true,
                queue_classes: [("night".to_owned(), "high".to_owned())].into(),
                usage_half_life_seconds: 0,
            }),
        },
        Event::ClassChanged { job: fixture.job_id, component: Some(1), class: "high".into() },
        Event::CommandRefused {
            command: "submit".into(),
            code: RefusalCode::LimitReached,
            message: "no".into(),
            unrecorded: 2,
        },
    ]
}
