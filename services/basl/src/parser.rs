//! Tokens into a program. After a mistake it continues with the next statement, so that one check lists all of them.

mod expressions;
mod statements;

use crate::{
    constants::{self, KEYWORDS},
    fault::Faults,
    lexer::{self, Lexeme, Token},
    syntax::{Declaration, Form, Function, Item, Name, Source, Statement},
    types::{Basic, Kind, Scalar, Type},
    words::suggestion,
};

/// How deep blocks and expressions are inside each other. Far below what fits onto a stack.
const DEEPEST: u16 = 120;

/// Parameters of a function.
const MOST_PARAMETERS: usize = 255;

/// Reads a program and tells its mistakes.
pub(crate) fn parse<'t>(text: &'t str, faults: &mut Faults) -> Source<'t> {
    let lexemes = lexer::tokens(text, faults);
    let mut parser = Parser { lexemes, next: 0, depth: 0, faults };
    parser.source()
}

struct Parser<'t, 'f> {
    /// The last one is the end of the file.
    lexemes: Vec<Lexeme<'t>>,
    next: usize,
    depth: u16,
    faults: &'f mut Faults,
}

impl<'t> Parser<'t, '_> {
    fn lexeme(&self) -> &Lexeme<'t> {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> &Lexeme<'t> {
        let last = self.lexemes.len() - 1;
        &self.lexemes[self.next.saturating_add(count).min(last)]
    }

    fn at(&self) -> Name<'t> {
        Name { text: self.lexeme().text, place: self.lexeme().place }
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.lexemes.len() - 1);
    }

    fn is_end(&self) -> bool {
        self.lexeme().token == Token::End
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.lexeme().token, Token::Sign(found) if found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        self.lexeme().token == Token::Word && self.lexeme().text == word
    }

    /// Takes a sign if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Takes a sign that must be next.
    fn expect(&mut self, sign: &str, place: &str) -> Option<()> {
        if self.take(sign) {
            return Some(());
        }
        self.unexpected(&format!("expected '{sign}' {place}"))
    }

    /// Tells that the next token is not what is expected.
    fn unexpected<T>(&mut self, message: &str) -> Option<T> {
        // A token with a mistake of its own was told.
        if self.lexeme().token != Token::Wrong {
            self.wrong(self.at(), message);
        }
        None
    }

    fn wrong(&mut self, at: Name<'t>, message: &str) {
        self.faults.add(at.place, at.text, message);
    }

    /// Runs a part of the grammar that can contain itself.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            let message = format!("more than {DEEPEST} blocks and expressions inside each other");
            return self.unexpected(&message);
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// After a mistake: to behind the end of the statement, or in front of the brace that ends its block.
    fn recover(&mut self) {
        let mut open = 0_u32;
        while !self.is_end() {
            if self.is_sign("{") {
                open += 1;
            } else if self.is_sign("}") {
                if open <= 1 {
                    if open == 1 {
                        self.advance();
                    }
                    return;
                }
                open -= 1;
            } else if open == 0 && self.take(";") {
                return;
            }
            self.advance();
        }
    }

    /// An identifier that is not reserved.
    fn name(&mut self, what: &str) -> Option<Name<'t>> {
        let at = self.at();
        if self.lexeme().token != Token::Word {
            return self.unexpected(&format!("expected {what}"));
        }
        if KEYWORDS.contains(&at.text) || constants::constant(at.text).is_some() {
            return self.unexpected(&format!("expected {what}; this word is reserved"));
        }
        self.advance();
        Some(at)
    }

    fn source(&mut self) -> Source<'t> {
        let mut source = Source::default();
        while !self.is_end() && !self.faults.is_full() {
            if source.main.is_some() {
                self.wrong(self.at(), "expected the end of the file: sched_main comes last");
                break;
            }
            let before = self.next;
            if self.top_level(&mut source).is_none() {
                self.recover();
                // A brace that closes nothing.
                if self.next == before || self.is_sign("}") {
                    self.advance();
                }
            }
        }
        if source.main.is_none() && !self.faults.is_full() {
            self.wrong(self.at(), "expected sched_main() { } at the end of the program");
        }
        source
    }

    /// A declaration, a function or an assignment.
    fn top_level(&mut self, source: &mut Source<'t>) -> Option<()> {
        let at = self.at();
        if self.take_word("sched_main") {
            self.expect("(", "after sched_main")?;
            self.expect(")", "after sched_main(")?;
            let body = self.block()?;
            source.main = Some(Function { result: Type::VOID, name: at, parameters: Vec::new(), body });
            return Some(());
        }
        if self.is_type() {
            if !source.assignments.is_empty() {
                self.wrong(at, "declarations and functions come before the assignments to global variables");
            }
            source.items.push(self.item()?);
            return Some(());
        }
        if self.lexeme().token == Token::Word && matches!(self.ahead(1).token, Token::Sign("=")) {
            let statement = self.assignment()?;
            self.expect(";", "after the assignment")?;
            source.assignments.push(statement);
            return Some(());
        }
        let near = suggestion(at.text, KEYWORDS.into_iter().take(15));
        self.unexpected(&format!("expected a declaration, a function, an assignment to a global or sched_main(){near}"))
    }

    fn is_type(&self) -> bool {
        const WORDS: [&str; 14] = [
            "Void",
            "Int",
            "Float",
            "Dayofweek",
            "DateTime",
            "String",
            "Size",
            "Server",
            "Que",
            "Job",
            "CNode",
            "Set",
            "Range",
            "Fun",
        ];
        self.lexeme().token == Token::Word && WORDS.contains(&self.lexeme().text)
    }

    fn item(&mut self) -> Option<Item<'t>> {
        let at = self.at();
        let of_type = self.of_type()?;
        let name = self.name("a name after the type")?;
        if !self.take("(") {
            let declaration = self.variable(at, of_type, name)?;
            return Some(Item::Variable(declaration));
        }
        if !matches!(of_type, Type::Basic(_)) {
            self.wrong(at, &format!("a function cannot return {of_type}"));
        }
        let parameters = self.parameters()?;
        let body = self.block()?;
        Some(Item::Function(Function { result: of_type, name, parameters, body }))
    }

    /// The rest of a declaration.
    fn variable(&mut self, at: Name<'t>, of_type: Type, name: Name<'t>) -> Option<Declaration<'t>> {
        if matches!(of_type, Type::VOID | Type::Fun(_)) {
            self.wrong(at, &format!("a variable cannot be {of_type}"));
        }
        if self.is_sign("=") {
            return self.unexpected("expected ';' after the declaration; a value is assigned in a statement");
        }
        self.expect(";", "after the declaration")?;
        Some(Declaration { of_type, name })
    }

    fn parameters(&mut self) -> Option<Vec<Declaration<'t>>> {
        let mut parameters = Vec::new();
        if self.take(")") {
            return Some(parameters);
        }
        loop {
            let at = self.at();
            let of_type = self.of_type()?;
            if of_type == Type::VOID {
                self.wrong(at, "a parameter cannot be Void");
            }
            if parameters.len() >= MOST_PARAMETERS {
                return self.unexpected(&format!("more than {MOST_PARAMETERS} parameters"));
            }
            parameters.push(Declaration { of_type, name: self.name("the name of a parameter")? });
            if self.take(")") {
                return Some(parameters);
            }
            self.expect(",", "or ')' after a parameter")?;
        }
    }

    fn of_type(&mut self) -> Option<Type> {
        if self.take_word("Fun") {
            let at = self.at();
            return match self.of_value()? {
                Type::Basic(result) => Some(Type::Fun(result)),
                other => {
                    self.wrong(at, &format!("a function cannot return {other}"));
                    Some(Type::Unknown)
                }
            };
        }
        self.of_value()
    }

    /// A type that is no function.
    fn of_value(&mut self) -> Option<Type> {
        if self.take_word("Set") {
            return match self.basic()? {
                Basic::Object(kind) => Some(Type::set(kind)),
                _ => self.unexpected("expected Server, Que, Job or CNode after Set"),
            };
        }
        if self.take_word("Range") {
            return match self.basic()?.scalar() {
                Some(scalar) => Some(Type::Range(scalar)),
                None => self.unexpected("expected Int, Float, Dayofweek, DateTime or Size after Range"),
            };
        }
        self.basic().map(Type::Basic)
    }

    fn basic(&mut self) -> Option<Basic> {
        let basic = match self.lexeme().text {
            "Void" => Basic::Void,
            "Int" => Basic::Int,
            "Float" => Basic::Float,
            "Dayofweek" => Basic::Dayofweek,
            "DateTime" => Basic::DateTime,
            "String" => Basic::String,
            "Size" => Basic::Size,
            "Server" => Basic::Object(Kind::Server),
            "Que" => Basic::Object(Kind::Que),
            "Job" => Basic::Object(Kind::Job),
            "CNode" => Basic::Object(Kind::CNode),
            given => {
                let near = suggestion(given, KEYWORDS.into_iter().skip(1).take(11));
                return self.unexpected(&format!("expected a type{near}"));
            }
        };
        self.advance();
        Some(basic)
    }
}

/// An empty statement in place of one with a mistake.
fn nothing(at: Name<'_>) -> Statement<'_> {
    Statement { at, form: Form::Empty }
}

/// The range of two constants.
fn scalar_of(of_type: Type) -> Option<Scalar> {
    match of_type {
        Type::Basic(basic) => basic.scalar(),
        _ => None,
    }
}
