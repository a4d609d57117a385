//! Reads formulas.
//!
//! ```text
//! or      = and { "or" and }
//! and     = not { "and" not }
//! not     = "not" not | compare
//! compare = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/" | "%") unary }
//! unary   = "-" unary | power
//! power   = value [ "^" unary ]
//! value   = NUMBER | VARIABLE | FUNCTION "(" or { "," or } ")" | "attribute" "(" TEXT ")" | "(" or ")"
//! ```

use super::{
    Binary, Formula, FormulaError, Instruction, MOST_DEPTH, Unary, Variable,
    names::{INFIX, TRACE_ATTRIBUTES, VARIABLES},
};
use crate::policy::words;

/// More operands and operators than a person writes. It bounds the cost of a formula.
const MOST_INSTRUCTIONS: usize = 1000;
const MOST_ATTRIBUTE_BYTES: usize = 256;

#[derive(Clone, Copy)]
enum Function {
    One(Unary),
    /// Takes any number of arguments, the first two at once.
    Fold(Binary),
    Two(Binary),
    If,
}

const FUNCTIONS: [(&str, Function); 12] = [
    ("abs", Function::One(Unary::Abs)),
    ("sqrt", Function::One(Unary::Sqrt)),
    ("log2", Function::One(Unary::Log2)),
    ("log10", Function::One(Unary::Log10)),
    ("ln", Function::One(Unary::Ln)),
    ("exp", Function::One(Unary::Exp)),
    ("floor", Function::One(Unary::Floor)),
    ("ceil", Function::One(Unary::Ceil)),
    ("min", Function::Fold(Binary::Min)),
    ("max", Function::Fold(Binary::Max)),
    ("pow", Function::Two(Binary::Power)),
    ("if", Function::If),
];
const ATTRIBUTE: &str = "attribute";
/// Words that are not names.
const OPERATORS: [&str; 3] = ["and", "or", "not"];

/// How tightly operators bind, the loosest first.
const OR: u8 = 0;
const NOT: u8 = 2;
const COMPARE: u8 = 3;
const UNARY: u8 = 6;

impl Formula {
    /// Reads a formula. `docs/reference/policy.md` has the language.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        let mut parser = Parser { text, at: 0, code: Vec::new(), pending: 0, attributes: Vec::new() };
        parser.expression(OR, 0)?;
        match parser.peek() {
            "" => Ok(Self { code: parser.code, attributes: parser.attributes }),
            token => Err(parser.expected(token, "an operator or the end")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The next byte to read.
    at: usize,
    code: Vec<Instruction>,
    /// Operands that no operator has taken yet.
    pending: usize,
    attributes: Vec<String>,
}

impl<'a> Parser<'a> {
    /// The next token; empty at the end. A character that cannot begin a token is a token by itself.
    fn peek(&mut self) -> &'a str {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
        let rest = &self.text[self.at..];
        let length = match rest.chars().next() {
            None => 0,
            Some(c) if c.is_ascii_digit() => number_length(rest),
            Some(c) if is_of_word(c) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            Some('=' | '!' | '<' | '>') if rest[1..].starts_with('=') => 2,
            Some('"') => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            Some(c) => c.len_utf8(),
        };
        &rest[..length]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, what: &str) -> Result<(), FormulaError> {
        if self.take(token) {
            return Ok(());
        }
        let found = self.peek();
        Err(self.expected(found, what))
    }

    /// The error for an unexpected next token.
    fn expected(&self, token: &str, what: &str) -> FormulaError {
        FormulaError {
            column: self.text[..self.at].chars().count() + 1,
            token: words::shorten(token),
            expected: what.into(),
            nearest: None,
        }
    }

    /// Adds an instruction that takes a number of operands and leaves one.
    fn emit(&mut self, instruction: Instruction, takes: usize) -> Result<(), FormulaError> {
        if self.code.len() == MOST_INSTRUCTIONS {
            let found = self.peek();
            return Err(self.expected(found, &format!("a formula of at most {MOST_INSTRUCTIONS} values and operators")));
        }
        self.pending = self.pending + 1 - takes;
        if self.pending > MOST_DEPTH {
            return Err(self.too_deep());
        }
        self.code.push(instruction);
        Ok(())
    }

    fn too_deep(&mut self) -> FormulaError {
        let found = self.peek();
        self.expected(found, &format!("a formula that is nested at most {MOST_DEPTH} deep"))
    }

    /// Operators that bind at least this tightly, and their operands. Right operands of `^` do not count as a level:
    /// each has a pending operand, and those are counted.
    fn expression(&mut self, tightness: u8, depth: usize) -> Result<(), FormulaError> {
        self.operand(tightness, depth)?;
        let mut compared = false;
        while let Some((operator, binds)) = binary(self.peek()) {
            if binds < tightness || (binds == COMPARE && compared) {
                break;
            }
            compared |= binds == COMPARE;
            let length = self.peek().len();
            self.at += length;
            // `^` takes its right side first, and a sign may stand there.
            self.expression(if operator == Binary::Power { UNARY } else { binds + 1 }, depth)?;
            self.emit(Instruction::Two(operator), 2)?;
        }
        Ok(())
    }

    fn operand(&mut self, tightness: u8, depth: usize) -> Result<(), FormulaError> {
        if depth > MOST_DEPTH {
            return Err(self.too_deep());
        }
        let token = self.peek();
        match token {
            "-" => {
                self.at += 1;
                self.expression(UNARY, depth + 1)?;
                self.emit(Instruction::One(Unary::Negate), 1)
            }
            "not" if tightness <= NOT => {
                self.at += token.len();
                self.expression(NOT, depth + 1)?;
                self.emit(Instruction::One(Unary::Not), 1)
            }
            "(" => {
                self.at += 1;
                self.expression(OR, depth + 1)?;
                self.expect(")", "an operator or `)`")
            }
            _ if token.starts_with(|c: char| c.is_ascii_digit()) => self.number(token),
            _ if token.starts_with(is_of_word) && !OPERATORS.contains(&token) => self.name(token, depth),
            _ => Err(self.expected(token, "a number, a name or `(`")),
        }
    }

    fn number(&mut self, token: &str) -> Result<(), FormulaError> {
        match token.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.at += token.len();
                self.emit(Instruction::Number(number), 0)
            }
            _ => Err(self.expected(token, "a number up to about 1.8e308")),
        }
    }

    fn name(&mut self, token: &str, depth: usize) -> Result<(), FormulaError> {
        if let Some((_, variable)) = VARIABLES.iter().find(|(name, _)| *name == token) {
            self.at += token.len();
            return self.emit(Instruction::Variable(*variable), 0);
        }
        if TRACE_ATTRIBUTES.contains(&token) {
            self.at += token.len();
            return self.attribute(token);
        }
        if token == ATTRIBUTE {
            self.at += token.len();
            return self.named_attribute();
        }
        match FUNCTIONS.iter().find(|(name, _)| *name == token) {
            Some((name, function)) => {
                self.at += token.len();
                self.expect("(", &format!("`(` after `{name}`"))?;
                self.call(name, *function, depth + 1)
            }
            None => {
                let known = VARIABLES.iter().map(|(name, _)| *name).chain(TRACE_ATTRIBUTES).chain([ATTRIBUTE]);
                let known = known.chain(FUNCTIONS.iter().map(|(name, _)| *name)).chain(OPERATORS);
                let nearest = words::nearest(token, known);
                Err(FormulaError { nearest, ..self.expected(token, "a variable or a function") })
            }
        }
    }

    fn attribute(&mut self, name: &str) -> Result<(), FormulaError> {
        let index = self.attributes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.attributes.push(name.to_owned());
            self.attributes.len() - 1
        });
        self.emit(Instruction::Variable(Variable::Attribute(index)), 0)
    }

    fn named_attribute(&mut self) -> Result<(), FormulaError> {
        self.expect("(", "`(\"NAME\")` after `attribute`")?;
        let token = self.peek();
        let name = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match name {
            Some(name) if (1..=MOST_ATTRIBUTE_BYTES).contains(&name.len()) && !name.contains(char::is_control) => {
                self.at += token.len();
                self.attribute(name)?;
                self.expect(")", "`)`")
            }
            _ => {
                Err(self
                    .expected(token, &format!("the name of an attribute in \"\", 1 to {MOST_ATTRIBUTE_BYTES} bytes")))
            }
        }
    }

    fn call(&mut self, name: &str, function: Function, depth: usize) -> Result<(), FormulaError> {
        self.expression(OR, depth)?;
        match function {
            Function::One(unary) => self.emit(Instruction::One(unary), 1)?,
            Function::Two(binary) => {
                self.next_argument(name, 2, depth)?;
                self.emit(Instruction::Two(binary), 2)?;
            }
            Function::Fold(binary) => {
                self.expect(",", &format!("an operator or `,`: `{name}` takes two or more values"))?;
                loop {
                    self.expression(OR, depth)?;
                    self.emit(Instruction::Two(binary), 2)?;
                    if !self.take(",") {
                        break;
                    }
                }
            }
            Function::If => {
                self.next_argument(name, 3, depth)?;
                self.next_argument(name, 3, depth)?;
                self.emit(Instruction::If, 3)?;
            }
        }
        self.expect(")", &format!("an operator or the `)` of `{name}`"))
    }

    fn next_argument(&mut self, name: &str, of: usize, depth: usize) -> Result<(), FormulaError> {
        self.expect(",", &format!("an operator or `,`: `{name}` takes {of} values"))?;
        self.expression(OR, depth)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the number that the text begins with: digits, a fraction, an exponent.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// The operator that stands between two operands, and how tightly it binds.
fn binary(token: &str) -> Option<(Binary, u8)> {
    INFIX.iter().find(|(name, ..)| *name == token).map(|(_, operator, binds)| (*operator, *binds))
}
