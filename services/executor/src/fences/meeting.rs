//! The fences of one step, as the node sees them that leads them. Pure: no time, no bus.

use muster_schemas::fence::{MAX_CONTRIBUTION_BYTES, MAX_PIECE_BYTES, join};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most that all places contribute to a fence, and its answer, in bytes.
const MAX_STEP_BYTES: usize = 256 << 20;

/// The fences of a step, one after the other.
#[derive(Debug)]
pub struct Meeting {
    /// The node of each place.
    nodes: Vec<String>,
    /// The number of the fence that is being held.
    number: u32,
    /// The contributions to it so far, whole or not.
    contributions: BTreeMap<u32, Vec<u8>>,
    /// The places whose contribution is whole.
    present: BTreeSet<u32>,
    /// The answer to the fence before.
    answer: Arc<[u8]>,
    /// Whether that is kept where a restart finds it. Nobody gets it before.
    is_kept: bool,
    /// The places whose tasks have ended.
    left: BTreeSet<u32>,
    broken: Option<String>,
}

/// What a place is told that comes to a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// Its contribution has come up to here.
    Received(u64),
    /// Somebody is missing.
    Waits,
    /// All are there: this answer is to be kept, and then [`Meeting::kept`] called, before anybody gets it.
    Keep(u32, Arc<[u8]>),
    /// What all have contributed.
    All(Arc<[u8]>),
    /// It cannot be.
    Broken(String),
}

/// A piece of a contribution.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where it begins.
    pub offset: u64,
    pub bytes: &'a [u8],
    pub is_last: bool,
}

impl Meeting {
    /// The fences of a step with places on these nodes, in their order.
    pub fn new(nodes: Vec<String>) -> Self {
        Self {
            nodes,
            number: 0,
            contributions: BTreeMap::new(),
            present: BTreeSet::new(),
            answer: Arc::new([]),
            is_kept: true,
            left: BTreeSet::new(),
            broken: None,
        }
    }

    /// Continues after the last fence that is over, with its answer, and without the places that have left.
    pub fn continue_after(
        &mut self,
        last: Option<(u32, Result<Vec<u8>, String>)>,
        left: impl IntoIterator<Item = u32>,
    ) {
        self.left.extend(left);
        match last {
            Some((number, Ok(answer))) => (self.number, self.answer) = (number.saturating_add(1), answer.into()),
            Some((number, Err(why))) => (self.number, self.broken) = (number, Some(why)),
            None => {}
        }
    }

    /// The node of a place.
    pub fn node(&self, place: u32) -> Option<&str> {
        self.nodes.get(place as usize).map(String::as_str)
    }

    /// A place comes to a fence with a piece of its contribution. A repeated piece has no effect.
    pub fn meet(&mut self, place: u32, number: u32, piece: Piece<'_>) -> Met {
        let is_held = number == self.number && self.broken.is_none();
        if is_held && !self.present.contains(&place) {
            let received = self.contributions.entry(place).or_default();
            if piece.offset == received.len() as u64 {
                received.extend_from_slice(piece.bytes);
            }
            let length = received.len();
            if length > MAX_CONTRIBUTION_BYTES || self.bytes() > MAX_STEP_BYTES {
                self.break_up("its tasks contribute too much to a fence".to_owned());
            } else if !piece.is_last || piece.offset.saturating_add(piece.bytes.len() as u64) != length as u64 {
                return Met::Received(length as u64);
            } else {
                self.arrive(place);
            }
        }
        self.look(number)
    }

    /// The contribution of a place is whole.
    fn arrive(&mut self, place: u32) {
        self.present.insert(place);
        if self.present.len() < self.nodes.len() {
            return self.break_if_impossible();
        }
        self.answer = join(self.contributions.values().map(Vec::as_slice)).into();
        self.is_kept = false;
        self.contributions.clear();
        self.present.clear();
        self.number += 1;
    }

    /// The answer to the fence before is where a restart finds it.
    pub fn kept(&mut self, number: u32) {
        self.is_kept |= number.checked_add(1) == Some(self.number);
    }

    /// How a fence stands.
    pub fn look(&self, number: u32) -> Met {
        match (&self.broken, self.answer(number)) {
            (_, Some(answer)) => Met::All(answer),
            _ if !self.is_kept && number.checked_add(1) == Some(self.number) => Met::Keep(number, self.answer.clone()),
            (Some(why), None) => Met::Broken(why.clone()),
            (None, None) if number == self.number => Met::Waits,
            (None, None) => Met::Broken(format!("fence {number} is asked for while {} is held", self.number)),
        }
    }

    /// The answer to a fence that a place has come to, if that is over.
    pub fn answer(&self, number: u32) -> Option<Arc<[u8]>> {
        (self.is_kept && number.checked_add(1) == Some(self.number)).then(|| self.answer.clone())
    }

    /// The tasks of a place have ended.
    pub fn leave(&mut self, place: u32) {
        self.left.insert(place);
        self.break_if_impossible();
    }

    /// Whether nobody can ask any more.
    pub fn is_over(&self) -> bool {
        self.left.len() >= self.nodes.len()
    }

    /// How much it keeps in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.answer.len() + self.contributions.values().map(Vec::len).sum::<usize>()
    }

    /// Ends this and all later fences.
    pub fn break_up(&mut self, why: String) {
        self.contributions.clear();
        self.broken = Some(why);
    }

    /// Others wait for a place that does not come any more.
    fn break_if_impossible(&mut self) {
        if self.present.is_empty() || self.broken.is_some() {
            return;
        }
        if let Some(gone) = self.left.difference(&self.present).next() {
            let node = self.nodes.get(*gone as usize).map_or("a node", String::as_str);
            self.break_up(format!("its tasks on {node} have ended, and others wait for them"));
        }
    }
}

/// The piece of an answer from an offset on.
pub fn piece(answer: &[u8], offset: u64) -> Vec<u8> {
    let begin = usize::try_from(offset).map_or(answer.len(), |offset| offset.min(answer.len()));
    answer[begin..].iter().take(MAX_PIECE_BYTES).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::fence::split;

    fn meeting(places: usize) -> Meeting {
        Meeting::new((1..=places).map(|number| format!("n{number}")).collect())
    }

    fn whole(bytes: &[u8]) -> Piece<'_> {
        Piece { offset: 0, bytes, is_last: true }
    }

    /// The last place comes: its answer is kept, and then given.
    fn meet_last(meeting: &mut Meeting, place: u32, number: u32, piece: Piece<'_>) -> Arc<[u8]> {
        let Met::Keep(kept, answer) = meeting.meet(place, number, piece) else { panic!("all have come") };
        assert_eq!((kept, meeting.answer(number)), (number, None), "nobody gets what is not kept");
        meeting.kept(number);
        assert_eq!(meeting.look(number), Met::All(answer.clone()));
        answer
    }

    /// SL-W-04
    #[test]
    fn all_get_what_all_contribute_once_the_last_has_come() {
        let mut meeting = meeting(3);
        assert_eq!(meeting.meet(2, 0, whole(b"c")), Met::Waits);
        assert_eq!(meeting.meet(0, 0, whole(b"a")), Met::Waits);
        let answer = meet_last(&mut meeting, 1, 0, whole(b"b"));
        assert_eq!(split(&answer).unwrap(), [b"a", b"b", b"c"]);
        assert_eq!(meeting.meet(0, 0, whole(b"a")), Met::All(answer.clone()), "its answer was lost");
        assert_eq!(meeting.meet(0, 1, whole(b"")), Met::Waits);
        assert_eq!(meeting.answer(0), Some(answer), "a slow place still gets it");
    }

    #[test]
    fn pieces_count_once() {
        let mut meeting = meeting(1);
        let piece = |offset, bytes, is_last| Piece { offset, bytes, is_last };
        assert_eq!(meeting.meet(0, 0, piece(0, b"ab", false)), Met::Received(2));
        assert_eq!(meeting.meet(0, 0, piece(0, b"ab", false)), Met::Received(2), "repeated");
        assert_eq!(meeting.meet(0, 0, piece(3, b"d", true)), Met::Received(2), "one before it is missing");
        let answer = meet_last(&mut meeting, 0, 0, piece(2, b"c", true));
        assert_eq!(split(&answer).unwrap(), [b"abc"]);
    }

    /// SL-W-08
    #[test]
    fn nobody_waits_for_a_place_that_has_left() {
        let gone = Met::Broken("its tasks on n2 have ended, and others wait for them".into());
        let mut first = meeting(2);
        first.leave(1);
        assert_eq!(first.meet(0, 0, whole(b"")), gone);
        let mut later = meeting(2);
        assert_eq!(later.meet(0, 0, whole(b"")), Met::Waits);
        later.leave(1);
        assert_eq!(later.look(0), gone);
        assert_eq!(later.meet(0, 0, whole(b"")), gone, "asked again");
    }

    /// SL-W-08: the executor of the node that leads restarts.
    #[test]
    fn fences_continue_after_the_last_that_was_kept() {
        let mut before = meeting(2);
        assert_eq!(before.meet(0, 0, whole(b"a")), Met::Waits);
        let answer = meet_last(&mut before, 1, 0, whole(b"b"));
        let mut after = meeting(2);
        after.continue_after(Some((0, Ok(answer.to_vec()))), []);
        assert_eq!(after.meet(1, 0, whole(b"b")), Met::All(answer), "its answer was lost");
        assert_eq!(after.meet(1, 1, whole(b"")), Met::Waits);
        meet_last(&mut after, 0, 1, whole(b""));
        let mut without = meeting(2);
        without.continue_after(None, [1]);
        assert!(matches!(without.meet(0, 0, whole(b"")), Met::Broken(_)), "a place that left before is not waited for");
        let mut broken = meeting(2);
        broken.continue_after(Some((4, Err("why".into()))), []);
        assert_eq!(broken.meet(0, 4, whole(b"")), Met::Broken("why".into()));
    }

    #[test]
    fn who_has_come_may_leave() {
        let mut meeting = meeting(2);
        assert_eq!(meeting.meet(0, 0, whole(b"")), Met::Waits);
        meeting.leave(0);
        meet_last(&mut meeting, 1, 0, whole(b""));
        assert!(!meeting.is_over());
        meeting.leave(1);
        assert!(meeting.is_over());
    }

    #[test]
    fn a_number_out_of_turn_and_too_much_are_refused() {
        let mut one = meeting(1);
        assert!(matches!(one.meet(0, 7, whole(b"")), Met::Broken(_)));
        assert!(matches!(one.meet(0, u32::MAX, whole(b"")), Met::Broken(_)));
        let much = vec![0; MAX_CONTRIBUTION_BYTES + 1];
        assert!(matches!(one.meet(0, 0, whole(&much)), Met::Broken(_)));
        assert_eq!(one.bytes(), 0);
    }

    #[test]
    fn a_piece_ends_with_the_answer() {
        assert_eq!(piece(b"abc", 1), b"bc");
        assert_eq!(piece(b"abc", 3), b"");
        assert_eq!(piece(b"abc", u64::MAX), b"");
        assert_eq!(piece(&vec![1; MAX_PIECE_BYTES + 5], 0).len(), MAX_PIECE_BYTES);
    }
}
