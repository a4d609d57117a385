//! Blocks and statements.

use super::Parser;
use crate::{
    lexer::Token,
    syntax::{Block, Case, Expression, Form, Name, Statement, Term},
};

impl<'t> Parser<'t, '_> {
    /// `{ declarations, then statements }`
    pub(super) fn block(&mut self) -> Option<Block<'t>> {
        self.nested(Self::block_inside)
    }

    fn block_inside(&mut self) -> Option<Block<'t>> {
        self.expect("{", "before a block: braces are required")?;
        let mut block = Block::default();
        while !self.is_sign("}") {
            if self.is_end() {
                return self.unexpected("expected '}' at the end of a block");
            }
            if self.faults.is_full() {
                return None;
            }
            let before = self.next;
            if self.part_of(&mut block).is_none() {
                self.recover();
                if self.next == before && !self.is_sign("}") {
                    self.advance();
                }
            }
        }
        block.end = self.lexeme().place;
        self.advance();
        Some(block)
    }

    fn part_of(&mut self, block: &mut Block<'t>) -> Option<()> {
        let at = self.at();
        if !self.is_type() {
            let statement = self.statement()?;
            block.statements.push(statement);
            return Some(());
        }
        if !block.statements.is_empty() {
            self.wrong(at, "declarations come before the statements of a block");
        }
        let of_type = self.of_type()?;
        let name = self.name("a name after the type")?;
        if self.is_sign("(") {
            return self.unexpected("expected ';' after the declaration; functions are defined outside of others");
        }
        block.declarations.push(self.variable(at, of_type, name)?);
        Some(())
    }

    fn statement(&mut self) -> Option<Statement<'t>> {
        let at = self.at();
        let is_word = self.lexeme().token == Token::Word;
        if self.take(";") {
            return Some(Statement { at, form: Form::Empty });
        }
        let form = match at.text {
            "{" if self.is_sign("{") => Form::Block(self.block()?),
            "if" if is_word => self.condition()?,
            "while" if is_word => self.while_loop()?,
            "for" if is_word => self.for_loop()?,
            "foreach" if is_word => self.foreach_loop()?,
            "switch" if is_word => self.switch()?,
            "print" if is_word => Form::Print(self.argument("print")?),
            "exit" if is_word => Form::Exit(self.argument("exit")?),
            "return" if is_word => self.return_statement()?,
            "break" if is_word => self.single(Form::Break)?,
            "continue" if is_word => self.single(Form::Continue)?,
            "else" if is_word => return self.unexpected("'else' without 'if'"),
            "case" | "default" if is_word => return self.unexpected("a case outside of a switch"),
            _ => return self.simple(),
        };
        Some(Statement { at, form })
    }

    /// An assignment or an expression, with its semicolon.
    fn simple(&mut self) -> Option<Statement<'t>> {
        let at = self.at();
        if self.lexeme().token == Token::Word && matches!(self.ahead(1).token, Token::Sign("=")) {
            let assignment = self.assignment()?;
            self.expect(";", "after the assignment")?;
            return Some(assignment);
        }
        let expression = self.expression()?;
        if self.is_sign("=") {
            return self.unexpected("a value can be assigned to a variable only; comparisons are written EQ");
        }
        self.expect(";", "after the expression")?;
        Some(Statement { at, form: Form::Expression(expression) })
    }

    /// `a = value` or `a = b = value`, without its semicolon.
    pub(super) fn assignment(&mut self) -> Option<Statement<'t>> {
        let at = self.at();
        let mut targets = Vec::new();
        while targets.is_empty() || matches!(self.ahead(1).token, Token::Sign("=")) {
            targets.push(self.name("a variable before '='")?);
            self.expect("=", "after the variable")?;
        }
        let value = self.expression()?;
        Some(Statement { at, form: Form::Assignment { targets, value } })
    }

    fn single(&mut self, form: Form<'t>) -> Option<Form<'t>> {
        self.advance();
        self.expect(";", "after the statement")?;
        Some(form)
    }

    /// `word(expression);`
    fn argument(&mut self, word: &str) -> Option<Expression<'t>> {
        self.advance();
        self.expect("(", &format!("after {word}"))?;
        let value = self.expression()?;
        self.expect(")", &format!("after the value of {word}"))?;
        self.expect(";", "after the statement")?;
        Some(value)
    }

    fn return_statement(&mut self) -> Option<Form<'t>> {
        self.advance();
        self.expect("(", "after return: return() or return(value)")?;
        let value = if self.is_sign(")") { None } else { Some(self.expression()?) };
        self.expect(")", "after the value of return")?;
        self.expect(";", "after the statement")?;
        Some(Form::Return(value))
    }

    /// `word(expression)` in front of a block.
    fn head(&mut self, word: &str) -> Option<Expression<'t>> {
        self.advance();
        self.expect("(", &format!("after {word}"))?;
        let value = self.expression()?;
        self.expect(")", &format!("after the condition of {word}"))?;
        Some(value)
    }

    fn condition(&mut self) -> Option<Form<'t>> {
        let condition = self.head("if")?;
        let then = self.block()?;
        let otherwise = if self.take_word("else") { Some(self.block()?) } else { None };
        Some(Form::If { condition, then, otherwise })
    }

    fn while_loop(&mut self) -> Option<Form<'t>> {
        let condition = self.head("while")?;
        Some(Form::While { condition, body: self.block()? })
    }

    fn for_loop(&mut self) -> Option<Form<'t>> {
        self.advance();
        self.expect("(", "after for")?;
        let start = Box::new(self.step()?);
        self.expect(";", "after the start of for")?;
        let test = self.expression()?;
        self.expect(";", "after the test of for")?;
        let action = Box::new(self.step()?);
        self.expect(")", "after the action of for")?;
        Some(Form::For { start, test, action, body: self.block()? })
    }

    /// An assignment, or `++` or `--` behind a variable.
    fn step(&mut self) -> Option<Statement<'t>> {
        if matches!(self.ahead(1).token, Token::Sign("=")) {
            return self.assignment();
        }
        let at = self.at();
        let expression = self.expression()?;
        if !matches!(expression.term, Term::Step { .. }) {
            self.wrong(at, "expected an assignment, or ++ or -- behind a variable");
            return Some(super::nothing(at));
        }
        Some(Statement { at, form: Form::Expression(expression) })
    }

    fn foreach_loop(&mut self) -> Option<Form<'t>> {
        self.advance();
        self.expect("(", "after foreach")?;
        let variable = self.name("a variable after foreach(")?;
        if !self.take_word("in") {
            return self.unexpected("expected 'in' after the variable of foreach");
        }
        let set = self.expression()?;
        self.expect(")", "after the set of foreach")?;
        Some(Form::Foreach { variable, set, body: self.block()? })
    }

    fn switch(&mut self) -> Option<Form<'t>> {
        self.advance();
        self.expect("(", "after switch")?;
        let variable: Name<'t> = self.name("a variable after switch(")?;
        self.expect(")", "after the variable of switch")?;
        self.expect("{", "before the cases of switch")?;
        let (mut cases, mut default) = (Vec::new(), None);
        while !self.take("}") {
            let at = self.at();
            if default.is_some() {
                self.wrong(at, "expected '}': default is the last case of a switch");
                default = None;
            }
            if self.take_word("default") {
                self.expect(":", "after default")?;
                default = Some(self.block()?);
            } else if self.take_word("case") {
                cases.push(self.case()?);
            } else {
                return self.unexpected("expected 'case', 'default' or '}' in a switch");
            }
        }
        Some(Form::Switch { variable, cases, default })
    }

    fn case(&mut self) -> Option<Case<'t>> {
        let is_in = self.take_word("in");
        let value = self.expression()?;
        self.expect(":", "after the value of a case")?;
        Some(Case { is_in, value, body: self.block()? })
    }
}
