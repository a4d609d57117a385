//! `Sort`, `QueJobFind` and `QueFilter` (PBS-X-10).

use super::{At, Stop, Vm};
use crate::{
    code::{Callee, Key, callee},
    constants::number,
    getters::Getter,
    limits,
    size::Size,
    types::{Kind, Type},
    values::{NOTHING, Reference, elements},
};
use std::cmp::Ordering;

/// What a key function gave.
#[derive(Debug)]
enum KeyValue {
    /// Also seconds.
    Int(i64),
    Float(f64),
    Text(Reference),
    Size(Size),
}

impl KeyValue {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.cmp(other),
            (Self::Float(one), Self::Float(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.text().cmp(other.text()),
            (Self::Size(one), Self::Size(other)) => one.order(*other),
            _ => Ordering::Equal,
        }
    }
}

impl Vm<'_, '_> {
    /// `Sort(set, key, order)`: stable, and seen by all that hold the set.
    pub(super) fn sort(&mut self, key: Key, kind: Kind, at: At) -> Result<(), Stop> {
        let (function, order) = (self.words[at.words], self.words[at.words + 1]);
        let set = self.references[at.references].clone();
        let is_descending = match order {
            number::ASC => false,
            number::DESC => true,
            _ => {
                self.words[at.words] = 0;
                return Ok(());
            }
        };
        let mut keyed = Vec::new();
        for element in elements(&set) {
            keyed.push((self.key(function, key, kind, element)?, element));
        }
        keyed.sort_by(|(one, _), (other, _)| if is_descending { other.order(one) } else { one.order(other) });
        if let Some(set) = set.set() {
            *set.borrow_mut() = keyed.into_iter().filter_map(|(_, element)| u32::try_from(element).ok()).collect();
        }
        self.words[at.words] = 1;
        Ok(())
    }

    /// `QueJobFind(que, key, comparison[, value])`: the first match, or the first of the largest or smallest.
    pub(super) fn find(&mut self, key: Key, has_value: bool, at: At) -> Result<(), Stop> {
        let (que, function, test) = (self.words[at.words], self.words[at.words + 1], self.words[at.words + 2]);
        let jobs = elements(&self.world.reference(Getter::QueJobsGet, que));
        self.words[at.words] = match has_value {
            true => self.matches(jobs, (function, key, test), at, true)?.first().copied().unwrap_or(NOTHING),
            false => self.extreme(jobs, function, key, test)?,
        };
        Ok(())
    }

    /// `QueFilter(que, key, comparison, value)`: a new queue of the matches.
    pub(super) fn filter(&mut self, key: Key, at: At) -> Result<(), Stop> {
        let (que, function, test) = (self.words[at.words], self.words[at.words + 1], self.words[at.words + 2]);
        if que == NOTHING {
            return Ok(());
        }
        let jobs = elements(&self.world.reference(Getter::QueJobsGet, que));
        let found = self.matches(jobs, (function, key, test), at, false)?;
        self.queues_made += 1;
        if self.queues_made > limits::QUEUES_MADE {
            return Err(Stop::fault(format!("more than {} queues made by QueFilter", limits::QUEUES_MADE)));
        }
        let name = match key {
            Key::Int => "QueFilterInt",
            Key::Float => "QueFilterFloat",
            Key::String => "QueFilterStr",
            Key::DateTime => "QueFilterDateTime",
            Key::Size => "QueFilterSize",
        };
        self.words[at.words] = self.world.add_queue(name, &found);
        Ok(())
    }

    /// The jobs whose key compares with the value behind the arguments; only the first one if that is enough.
    fn matches(
        &mut self,
        jobs: Vec<i64>,
        (function, key, test): (i64, Key, i64),
        at: At,
        is_one_enough: bool,
    ) -> Result<Vec<i64>, Stop> {
        let wanted = match key {
            Key::String => KeyValue::Text(self.references[at.references].clone()),
            _ => self.key_value(key, self.words[at.words + 3]),
        };
        let mut found = Vec::new();
        for job in jobs {
            let order = self.key(function, key, Kind::Job, job)?.order(&wanted);
            let is_match = match test {
                number::OP_EQ => order.is_eq(),
                number::OP_NEQ => order.is_ne(),
                number::OP_LT => order.is_lt(),
                number::OP_LE => order.is_le(),
                number::OP_GT => order.is_gt(),
                number::OP_GE => order.is_ge(),
                _ => return Err(Stop::fault(format!("{test} is no comparison with a value, such as OP_EQ"))),
            };
            if is_match {
                found.push(job);
                if is_one_enough {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn extreme(&mut self, jobs: Vec<i64>, function: i64, key: Key, test: i64) -> Result<i64, Stop> {
        let better = match test {
            number::OP_MAX => Ordering::Greater,
            number::OP_MIN => Ordering::Less,
            _ => return Err(Stop::fault(format!("{test} needs a value; without one it is OP_MAX or OP_MIN"))),
        };
        let mut best: Option<(KeyValue, i64)> = None;
        for job in jobs {
            let value = self.key(function, key, Kind::Job, job)?;
            if best.as_ref().is_none_or(|(best, _)| value.order(best) == better) {
                best = Some((value, job));
            }
        }
        Ok(best.map_or(NOTHING, |(_, job)| job))
    }

    /// Calls a key function.
    fn key(&mut self, function: i64, key: Key, kind: Kind, object: i64) -> Result<KeyValue, Stop> {
        self.charge(1)?;
        match callee(function) {
            Some(Callee::Getter(getter, of, result)) if of == kind && Key::of(result) == Some(key) => Ok(match key {
                Key::String => KeyValue::Text(self.world.reference(getter, object)),
                _ => self.key_value(key, self.world.word(getter, object)),
            }),
            Some(Callee::Function(number)) => self.own_key(number, key, kind, object),
            _ => Err(Stop::fault(format!("a key function takes one {kind}"))),
        }
    }

    /// Calls a key function of the program, behind the registers of the function that is running.
    fn own_key(&mut self, number: u16, key: Key, kind: Kind, object: i64) -> Result<KeyValue, Stop> {
        let function = self.code.functions.get(usize::from(number));
        let is_right = |function: &&crate::code::Function| {
            function.parameters == [Type::object(kind)] && Key::of(function.result) == Some(key)
        };
        let (Some(_), Some(frame)) = (function.filter(is_right), self.frames.last().copied()) else {
            return Err(Stop::fault(format!("a key function takes one {kind}")));
        };
        if self.keyed >= limits::KEYED {
            let message = format!("more than {} sorts and searches inside each other's key functions", limits::KEYED);
            return Err(Stop::fault(message));
        }
        let sizes = self.code.functions.get(usize::from(frame.function));
        let words = frame.words + sizes.map_or(0, |running| usize::from(running.words));
        let references = frame.references + sizes.map_or(0, |running| usize::from(running.references));
        if words >= limits::WORDS || references >= limits::REFERENCES {
            return Err(Stop::fault("the variables of all calls inside each other need too much memory"));
        }
        self.words.resize(self.words.len().max(words + 1), 0);
        self.words[words] = object;
        self.keyed += 1;
        let done = self.invoke(number, words, references);
        self.keyed -= 1;
        done?;
        Ok(match key {
            Key::String => KeyValue::Text(std::mem::take(&mut self.references[references])),
            _ => self.key_value(key, self.words[words]),
        })
    }

    fn key_value(&self, key: Key, word: i64) -> KeyValue {
        match key {
            Key::Int | Key::String => KeyValue::Int(word),
            Key::Float => KeyValue::Float(f64::from_bits(word.cast_unsigned())),
            Key::DateTime => KeyValue::Int(self.seconds(word)),
            Key::Size => KeyValue::Size(Size::from_word(word)),
        }
    }
}
