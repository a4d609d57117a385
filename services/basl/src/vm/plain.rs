//! Predefined functions with a fixed list of parameters.

use super::{At, Stop, Vm};
use crate::{
    actions::{Action, Answer},
    functions::Plain,
    values::{Reference, object},
};

impl Vm<'_, '_> {
    /// Calls a predefined function. Its arguments are at the start of the window, and so is its result.
    pub(super) fn plain(&mut self, plain: Plain, at: At) -> Result<(), Stop> {
        let word = |place: usize| self.words.get(at.words + place).copied().unwrap_or_default();
        let (first, second) = (word(0), word(1));
        let text = self.references.get(at.references).cloned().unwrap_or_default();
        let result = match plain {
            Plain::AllServersGet => return self.put(at, self.world.all_servers.clone()),
            Plain::AllNodesGet => return self.put(at, self.world.all_nodes.clone()),
            Plain::AllServersLocalHostGet => 0,
            Plain::AllNodesLocalHostGet => object(self.world.local_node),
            Plain::DatetimeGet => self.clock.moment().to_word(),
            Plain::DatetimeToSecs => self.seconds(first),
            Plain::JobAction => self.job_action(first, second, &text)?,
            Plain::ServerNodesQuery => i64::from(self.world.query(first, text.text())),
            Plain::ServerNodesReserve if first == 0 => self.actions.reserve(text.text(), second).unwrap_or(0),
            Plain::ServerNodesRelease if first == 0 => i64::from(self.actions.release(second)),
            Plain::ServerNodesReserve | Plain::ServerNodesRelease => 0,
        };
        if let Some(register) = self.words.get_mut(at.words) {
            *register = result;
        }
        Ok(())
    }

    fn put(&mut self, at: At, result: Reference) -> Result<(), Stop> {
        if let Some(register) = self.references.get_mut(at.references) {
            *register = result;
        }
        Ok(())
    }

    /// `JobAction`: 1 if it was done. A refusal never ends the program (PBS-X-11).
    fn job_action(&mut self, job: i64, action: i64, parameter: &Reference) -> Result<i64, Stop> {
        let (Some(place), Some(action)) = (self.world.job_place(job), Action::of_number(action)) else {
            return Ok(0);
        };
        let answer = self.actions.act(place, action, parameter.text());
        // An action may have taken a while.
        self.next_look = self.statements;
        if answer == Answer::Refused {
            return Ok(0);
        }
        self.world.note(place, action, parameter.text(), &answer);
        self.started += usize::from(action.is_start());
        Ok(1)
    }
}
