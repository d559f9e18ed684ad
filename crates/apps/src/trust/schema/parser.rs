//! The grammar: `name & {pattern: option | …, …} | {…} <= #signer | …`, each rule behind `#rule:`.

use super::component;
use super::error::{Place, TextError, TextProblem};
use super::lexer::{Lexer, Token};
use super::limits::Limits;
use super::syntax::{Choice, Operand, Part, Rule, Term, Word};

/// Reads all definitions of `text`.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Vec<Rule>, TextError> {
    let mut parser = Parser::new(text, limits)?;
    let mut rules = Vec::new();
    while parser.token != Token::End {
        rules.push(parser.definition(rules.len())?);
    }
    Ok(rules)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    place: Place,
    /// Rule that is read.
    rule: Option<&'a str>,
    limits: &'a Limits,
}

type Parsed<T> = Result<T, TextError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Parsed<Self> {
        let mut parser = Self {
            lexer: Lexer::new(text),
            token: Token::End,
            place: Place { line: 1, column: 1 },
            rule: None,
            limits,
        };
        parser.bound("octets", text.len(), limits.max_octets)?;
        parser.advance()?;
        Ok(parser)
    }

    fn definition(&mut self, count: usize) -> Parsed<Rule> {
        self.rule = None;
        let Token::Rule(name) = self.token else {
            return self.unexpected("a rule, as in #member: \"calls\"/id");
        };
        self.rule = Some(name);
        self.bound("rules", count + 1, self.limits.max_rules)?;
        let name = self.word(name)?;
        if !self.is_next(":")? {
            return self.unexpected("':'");
        }
        let parts = self.name()?;
        let alternatives = match self.is_next("&")? {
            true => self.separated("|", Self::terms)?,
            false => Vec::new(),
        };
        let signers = match self.is_next("<=")? {
            true => self.separated("|", Self::signer)?,
            false => Vec::new(),
        };
        Ok(Rule {
            name,
            parts,
            alternatives,
            signers,
        })
    }

    fn name(&mut self) -> Parsed<Vec<Part>> {
        self.is_next("/")?;
        let mut parts = vec![self.part()?];
        while self.is_next("/")? {
            self.bound("components", parts.len() + 1, self.limits.max_components)?;
            parts.push(self.part()?);
        }
        Ok(parts)
    }

    fn part(&mut self) -> Parsed<Part> {
        match self.token {
            Token::Rule(rule) => Ok(Part::Rule(self.word(rule)?)),
            _ => match self.operand("a component, a pattern or a rule")? {
                Operand::Value(value) => Ok(Part::Value(value)),
                Operand::Pattern(pattern) => Ok(Part::Pattern(pattern)),
            },
        }
    }

    fn signer(&mut self) -> Parsed<Word> {
        match self.token {
            Token::Rule(rule) => self.word(rule),
            _ => self.unexpected("a rule that signs"),
        }
    }

    fn terms(&mut self) -> Parsed<Vec<Term>> {
        if !self.is_next("{")? {
            return self.unexpected("'{'");
        }
        let terms = self.separated(",", Self::term)?;
        match self.is_next("}")? {
            true => Ok(terms),
            false => self.unexpected("'}', ',' or '|'"),
        }
    }

    fn term(&mut self) -> Parsed<Term> {
        let Token::Pattern(pattern) = self.token else {
            return self.unexpected("a pattern");
        };
        let pattern = self.word(pattern)?;
        if !self.is_next(":")? {
            return self.unexpected("':'");
        }
        let options = self.separated("|", Self::choice)?;
        Ok(Term { pattern, options })
    }

    fn choice(&mut self) -> Parsed<Choice> {
        let Token::Function(name) = self.token else {
            let operand = self.operand("a component, a pattern or a function")?;
            return Ok(Choice::Operand(operand));
        };
        let name = self.word(name)?;
        if !self.is_next("(")? {
            return self.unexpected("'('");
        }
        let mut arguments = Vec::new();
        if !matches!(self.token, Token::Sign(")" | ",")) {
            arguments.push(self.argument()?);
        }
        while self.is_next(",")? {
            self.bound("arguments", arguments.len() + 1, self.limits.max_options)?;
            arguments.push(self.argument()?);
        }
        match self.is_next(")")? {
            true => Ok(Choice::Call(name, arguments)),
            false => self.unexpected("')' or ','"),
        }
    }

    fn argument(&mut self) -> Parsed<Operand> {
        self.operand("a component or a pattern")
    }

    fn operand(&mut self, expected: &'static str) -> Parsed<Operand> {
        match self.token {
            Token::Pattern(pattern) => Ok(Operand::Pattern(self.word(pattern)?)),
            Token::Text(text) => {
                let value = component::parse(text).map_err(|reason| {
                    let text = text.to_owned();
                    self.error(TextProblem::Component { text, reason })
                })?;
                self.advance()?;
                Ok(Operand::Value(value))
            }
            _ => self.unexpected(expected),
        }
    }

    /// Reads one or more items with `sign` between them.
    fn separated<T>(
        &mut self,
        sign: &str,
        item: impl Fn(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.is_next(sign)? {
            self.bound("options", items.len() + 1, self.limits.max_options)?;
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Takes `sign` if it is next; returns whether it was.
    fn is_next(&mut self, sign: &str) -> Parsed<bool> {
        let is_next = matches!(self.token, Token::Sign(next) if next == sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Takes `text`, which is the next token.
    fn word(&mut self, text: &str) -> Parsed<Word> {
        let word = Word {
            text: text.to_owned(),
            place: self.place,
        };
        self.advance()?;
        Ok(word)
    }

    fn advance(&mut self) -> Parsed<()> {
        let (place, token) = self.lexer.next();
        self.place = place;
        self.token = token.map_err(|problem| self.error(problem))?;
        Ok(())
    }

    fn bound(&self, what: &'static str, count: usize, limit: usize) -> Parsed<()> {
        match count <= limit {
            true => Ok(()),
            false => Err(self.error(TextProblem::TooMany { what, count, limit })),
        }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Parsed<T> {
        let found = self.token.described();
        Err(self.error(TextProblem::Unexpected { found, expected }))
    }

    fn error(&self, problem: TextProblem) -> TextError {
        TextError {
            place: self.place,
            rule: self.rule.map(str::to_owned),
            problem,
        }
    }
}
