//! Advance reservations, and times in which nodes serve no jobs.

use crate::{Client, ClientError, Moment, query::encode};
use muster_schemas::{
    CommandId,
    plan::ReservationSpec,
    views::{ClosuresRequest, CommandAnswer, ReservationsPage},
};

impl Client {
    /// All reservations that are not over.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn reservations(&mut self, moment: Moment) -> Result<ReservationsPage, ClientError> {
        self.get(&moment.add_to("/v1/reservations".to_owned()))
    }

    /// Keeps nodes for some jobs for a time.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn reserve(&mut self, id: CommandId, reservation: &ReservationSpec) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/reservations", reservation)
    }

    /// Changes a reservation.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn change_reservation(
        &mut self,
        id: CommandId,
        reservation: &ReservationSpec,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", &format!("/v1/reservations/{}", encode(&reservation.name)), reservation)
    }

    /// Removes a reservation.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn remove_reservation(&mut self, id: CommandId, name: &str) -> Result<CommandAnswer, ClientError> {
        self.command(id, "DELETE", &format!("/v1/reservations/{}", encode(name)), &serde_json::json!({}))
    }

    /// Sets the times in which nodes serve no jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_closures(&mut self, id: CommandId, request: &ClosuresRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/nodes/actions/set-closures", request)
    }
}
