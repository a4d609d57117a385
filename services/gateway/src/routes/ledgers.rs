//! Several ledgers that keep one history.

use crate::{
    app::{Answered, App, Asked},
    body::Json,
    error::ApiError,
};
use axum::extract::State;
use muster_schemas::{
    command::{Command, RefusalCode},
    ledgers::{HandOverRequest, LedgerRole, LedgerView, LedgersPage},
    views::{CommandAnswer, ErrorBody},
};

/// List the ledgers that keep one history
///
/// Each reports over the bus, also while none leads. None is listed if the cluster has one ledger without others.
#[utoipa::path(operation_id = "list_ledgers", get, path = "/v1/ledgers", tag = "system",
    responses((status = 200, body = LedgersPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(app): State<App>) -> axum::Json<LedgersPage> {
    axum::Json(app.ledgers.page().await)
}

/// Let another ledger lead
///
/// The present leader ends its reign once it has answered. For operators.
#[utoipa::path(operation_id = "hand_over", post, path = "/v1/ledgers/actions/hand-over", tag = "system",
    request_body = HandOverRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated command has the same.")),
    responses((status = 200, body = CommandAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn hand_over(State(app): State<App>, asked: Asked, Json(request): Json<HandOverRequest>) -> Answered {
    let HandOverRequest { to } = request;
    if app.is_operator(asked.caller()) {
        check_successor(&app.ledgers.page().await.ledgers, to.as_deref())?;
    }
    app.jobs_command(asked, Command::HandOver { to }).await
}

/// Refuses what would leave the cluster without a leader for a while: nobody is there to take the lead. The ledger that
/// decides knows of no others.
fn check_successor(ledgers: &[LedgerView], to: Option<&str>) -> Result<(), ApiError> {
    let conflict = |message: String| Err(ApiError::new(RefusalCode::Conflict.into(), message));
    let mut standbys = ledgers.iter().filter(|ledger| ledger.role == LedgerRole::Standby);
    let Some(name) = to else {
        return match standbys.next() {
            Some(_) => Ok(()),
            None => conflict("no other ledger stands by; `muster ledgers` lists them".to_owned()),
        };
    };
    match ledgers.iter().find(|ledger| ledger.name == name) {
        None => {
            Err(ApiError::not_found(format!("no ledger `{name}` has reported; `muster ledgers` lists those that have")))
        }
        Some(ledger) if matches!(ledger.role, LedgerRole::Joining | LedgerRole::Stopped) => {
            conflict(format!("ledger {name} cannot lead now: it is {}", ledger.role.word()))
        }
        // One that leads already is refused by itself.
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{Sequence, Timestamp};

    /// M-LOG-19: the lead is handed over to a ledger that can take it.
    #[test]
    fn the_lead_goes_to_ledgers_that_stand_by() {
        let ledger = |name: &str, role| {
            let (name, reported) = (name.to_owned(), Timestamp(0));
            LedgerView { name, role, epoch: 1, last: Sequence(1), lag: None, reported }
        };
        let all = [
            ledger("a", LedgerRole::Leader),
            ledger("b", LedgerRole::Standby),
            ledger("c", LedgerRole::Joining),
            ledger("d", LedgerRole::Stopped),
        ];
        for (to, is_well) in [
            (None, true),
            (Some("b"), true),
            (Some("a"), true),
            (Some("c"), false),
            (Some("d"), false),
            (Some("e"), false),
        ] {
            assert_eq!(check_successor(&all, to).is_ok(), is_well, "{to:?}");
        }
        assert!(check_successor(&[ledger("a", LedgerRole::Leader)], None).is_err());
    }
}
