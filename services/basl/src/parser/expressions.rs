//! Expressions and constants.

use super::{Parser, scalar_of};
use crate::{
    constants::{self, KEYWORDS},
    lexer::Token,
    moment::Moment,
    syntax::{Arithmetic, Binary, Constant, Expression, Name, Term, Test, Unary},
    types::Scalar,
};

/// How high the tree of an expression can be, also one without parentheses.
const HIGHEST: u16 = 250;

impl<'t> Parser<'t, '_> {
    pub(super) fn expression(&mut self) -> Option<Expression<'t>> {
        self.nested(|parser| parser.operation(0))
    }

    /// Operands joined by operators that bind at least so strongly (PBS-X-04).
    fn operation(&mut self, least: u8) -> Option<Expression<'t>> {
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least) {
            let at = self.at();
            self.advance();
            let right = self.nested(|parser| parser.operation(strength + 1))?;
            let height = left.height.max(right.height) + 1;
            left = self.checked(Expression { at, height, term: Term::Binary(operator, Box::new([left, right])) })?;
        }
        Some(left)
    }

    fn checked(&mut self, expression: Expression<'t>) -> Option<Expression<'t>> {
        if expression.height <= HIGHEST {
            return Some(expression);
        }
        self.wrong(expression.at, &format!("more than {HIGHEST} operators in one expression"));
        None
    }

    fn operator(&self) -> Option<(Binary, u8)> {
        let is_word = self.lexeme().token == Token::Word;
        let is_sign = matches!(self.lexeme().token, Token::Sign(_));
        Some(match self.lexeme().text {
            "OR" if is_word => (Binary::Or, 0),
            "AND" if is_word => (Binary::And, 1),
            "EQ" if is_word => (Binary::Test(Test::Equal), 2),
            "NEQ" if is_word => (Binary::Test(Test::Differs), 2),
            "LT" if is_word => (Binary::Test(Test::Less), 3),
            "LE" if is_word => (Binary::Test(Test::LessOrEqual), 3),
            "GT" if is_word => (Binary::Test(Test::Greater), 3),
            "GE" if is_word => (Binary::Test(Test::GreaterOrEqual), 3),
            "+" if is_sign => (Binary::Arithmetic(Arithmetic::Add), 4),
            "-" if is_sign => (Binary::Arithmetic(Arithmetic::Subtract), 4),
            "*" if is_sign => (Binary::Arithmetic(Arithmetic::Multiply), 5),
            "/" if is_sign => (Binary::Arithmetic(Arithmetic::Divide), 5),
            "%" if is_sign => (Binary::Arithmetic(Arithmetic::Remainder), 5),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Option<Expression<'t>> {
        let at = self.at();
        let operator = match self.lexeme().token {
            Token::Sign("!") => Unary::Not,
            Token::Sign("-") => Unary::Minus,
            Token::Sign("+") => Unary::Plus,
            Token::Sign("++" | "--") => return self.unexpected("++ and -- stand behind a variable"),
            _ => return self.primary(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        if let (Term::Constant(constant), Unary::Minus | Unary::Plus) = (&operand.term, operator)
            && let Some(constant) = signed(constant, operator)
        {
            return Some(Expression { at, height: 1, term: Term::Constant(constant) });
        }
        let height = operand.height + 1;
        self.checked(Expression { at, height, term: Term::Unary(operator, Box::new(operand)) })
    }

    fn primary(&mut self) -> Option<Expression<'t>> {
        let at = self.at();
        let constant = match &self.lexeme().token {
            Token::Int(value) => Constant::Int(*value),
            Token::Float(value) => Constant::Float(*value),
            Token::Size(value) => Constant::Size(*value),
            Token::Text(value) => Constant::String(Some(value.clone())),
            Token::Word if KEYWORDS.contains(&at.text) => return self.unexpected("expected a value"),
            Token::Word => match constants::constant(at.text) {
                Some(constant) => constant,
                None => return self.named(),
            },
            Token::Sign("(") => return self.in_parentheses(),
            _ => return self.unexpected("expected a value"),
        };
        self.advance();
        Some(Expression { at, height: 1, term: Term::Constant(constant) })
    }

    /// A variable or a call.
    fn named(&mut self) -> Option<Expression<'t>> {
        let at = self.at();
        self.advance();
        if self.take("++") {
            return Some(Expression { at, height: 1, term: Term::Step { by: 1 } });
        }
        if self.take("--") {
            return Some(Expression { at, height: 1, term: Term::Step { by: -1 } });
        }
        if !self.take("(") {
            return Some(Expression { at, height: 1, term: Term::Variable });
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.expression()?);
                if self.take(")") {
                    break;
                }
                self.expect(",", "or ')' after an argument")?;
            }
        }
        let height = 1 + arguments.iter().map(|argument| argument.height).max().unwrap_or_default();
        self.checked(Expression { at, height, term: Term::Call(arguments) })
    }

    /// `(expression)`, `(m|d|yyyy)`, `(hh:mm:ss)`, `(m|d|yyyy@hh:mm:ss)` or a range `(a, b)`.
    fn in_parentheses(&mut self) -> Option<Expression<'t>> {
        let at = self.at();
        self.advance();
        let first = self.expression()?;
        let constant = match self.lexeme().token {
            Token::Sign("|") => self.date(at, &first)?,
            Token::Sign(":") => {
                let time = self.time(&first)?;
                self.moment(at, None, Some(time))
            }
            Token::Sign(",") => self.range(at, &first)?,
            _ => {
                self.expect(")", "after the expression")?;
                return Some(first);
            }
        };
        self.expect(")", "after the constant")?;
        Some(Expression { at, height: 1, term: Term::Constant(constant) })
    }

    /// The rest of a constant with a date.
    fn date(&mut self, at: Name<'t>, month: &Expression<'t>) -> Option<Constant> {
        let month = self.whole(month)?;
        self.advance();
        let day = self.int()?;
        self.expect("|", "after the day of a date")?;
        let year = self.int()?;
        let mut time = None;
        if self.take("@") {
            let hour = self.expression()?;
            time = Some(self.time(&hour)?);
        }
        Some(self.moment(at, Some((year, month, day)), time))
    }

    /// `:minute:second`
    fn time(&mut self, hour: &Expression<'t>) -> Option<(i64, i64, i64)> {
        let hour = self.whole(hour)?;
        self.expect(":", "after the hour of a time")?;
        let minute = self.int()?;
        self.expect(":", "after the minute of a time")?;
        Some((hour, minute, self.int()?))
    }

    fn moment(&mut self, at: Name<'t>, date: Option<(i64, i64, i64)>, time: Option<(i64, i64, i64)>) -> Constant {
        Constant::DateTime(Moment::new(date, time).unwrap_or_else(|| {
            self.wrong(at, "no such date or time: (month|day|year) with four digits of the year, (hour:minute:second)");
            Moment::UNSET
        }))
    }

    fn int(&mut self) -> Option<i64> {
        let Token::Int(value) = self.lexeme().token else { return self.unexpected("expected a whole number") };
        self.advance();
        Some(value)
    }

    fn whole(&mut self, expression: &Expression<'t>) -> Option<i64> {
        if let Term::Constant(Constant::Int(value)) = expression.term {
            return Some(value);
        }
        self.wrong(expression.at, "expected a whole number");
        None
    }

    fn range(&mut self, at: Name<'t>, low: &Expression<'t>) -> Option<Constant> {
        self.advance();
        let high = self.expression()?;
        let (Term::Constant(low), Term::Constant(high)) = (&low.term, &high.term) else {
            self.wrong(at, "a range consists of two constants");
            return None;
        };
        let (low, high) = match (low, high) {
            (Constant::Int(low), high @ Constant::Float(_)) => (Constant::Float(*low as f64), high.clone()),
            (low @ Constant::Float(_), Constant::Int(high)) => (low.clone(), Constant::Float(*high as f64)),
            (low, high) => (low.clone(), high.clone()),
        };
        let Some(scalar) = scalar_of(low.of_type()).filter(|_| low.of_type() == high.of_type()) else {
            let types = format!("a range cannot consist of {} and {}", low.of_type(), high.of_type());
            self.wrong(at, &types);
            return None;
        };
        if is_backward(&low, &high) {
            self.wrong(at, "the first value of a range is above the second");
        }
        Some(Constant::Range(scalar, ends(scalar, &low, &high)))
    }
}

/// A constant number with a sign before it.
fn signed(constant: &Constant, operator: Unary) -> Option<Constant> {
    let is_minus = operator == Unary::Minus;
    Some(match constant {
        Constant::Int(value) if is_minus => Constant::Int(value.checked_neg()?),
        Constant::Float(value) if is_minus => Constant::Float(-value),
        Constant::Size(value) if is_minus => Constant::Size(value.negated()),
        Constant::Int(_) | Constant::Float(_) | Constant::Size(_) => constant.clone(),
        _ => return None,
    })
}

/// Times without a date can run past midnight, and a date without a time depends on the time of the cycle.
fn is_backward(low: &Constant, high: &Constant) -> bool {
    match (low, high) {
        (Constant::Int(low), Constant::Int(high)) => low > high,
        (Constant::Float(low), Constant::Float(high)) => low > high,
        (Constant::Dayofweek(low), Constant::Dayofweek(high)) => low > high,
        (Constant::Size(low), Constant::Size(high)) => low.order(*high).is_gt(),
        (Constant::DateTime(low), Constant::DateTime(high)) => {
            let ((low_date, low_time), (high_date, high_time)) = (low.parts(), high.parts());
            let is_whole = low_time.is_some() == high_time.is_some();
            low_date.is_some() && high_date.is_some() && is_whole && (low_date, low_time) > (high_date, high_time)
        }
        _ => false,
    }
}

/// The registers of both ends.
fn ends(scalar: Scalar, low: &Constant, high: &Constant) -> [i64; 2] {
    [low, high].map(|end| match (scalar, end) {
        (_, Constant::Int(value)) => *value,
        (_, Constant::Float(value)) => value.to_bits().cast_signed(),
        (_, Constant::Dayofweek(value)) => i64::from(*value),
        (_, Constant::DateTime(value)) => value.to_word(),
        (_, Constant::Size(value)) => value.to_word(),
        _ => 0,
    })
}
