//! The layer below FED: lists in parentheses, with the place of each thing.

use super::error::{FedError, FedErrorKind, Place};

/// Deeper nesting is refused, so that a hostile file cannot exhaust the stack.
const DEPTH: usize = 64;

/// A word, or a list of things.
#[derive(Debug, PartialEq)]
pub struct Node<'t> {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub form: Form<'t>,
}

/// The two forms of a node.
#[derive(Debug, PartialEq)]
pub enum Form<'t> {
    /// A bare word, or a string without its quotes.
    Word(&'t str),
    /// What stands between `(` and `)`.
    List(Vec<Node<'t>>),
}

/// Reads the whole text as a sequence of nodes. `;` starts a comment that runs to the end of the line.
pub fn read(text: &str) -> Result<Vec<Node<'_>>, FedError> {
    let mut cursor = Cursor {
        rest: text,
        place: Place { line: 1, column: 1 },
    };
    // The lists that are open, outermost first, each with its place.
    let mut open: Vec<(Place, Vec<Node>)> = Vec::new();
    let mut top = Vec::new();
    while let Some((place, token)) = cursor.token()? {
        let form = match token {
            Token::Open if open.len() == DEPTH => return Err(at(place, FedErrorKind::TooDeep)),
            Token::Open => {
                open.push((place, Vec::new()));
                continue;
            }
            Token::Close => match open.pop() {
                Some((start, nodes)) => Node {
                    place: start,
                    form: Form::List(nodes),
                },
                None => return Err(at(place, FedErrorKind::Unopened)),
            },
            Token::Word(word) => Node {
                place,
                form: Form::Word(word),
            },
        };
        open.last_mut()
            .map_or(&mut top, |(_, nodes)| nodes)
            .push(form);
    }
    match open.pop() {
        Some((place, _)) => Err(at(place, FedErrorKind::Unclosed)),
        None => Ok(top),
    }
}

fn at(place: Place, kind: FedErrorKind) -> FedError {
    FedError { place, kind }
}

enum Token<'t> {
    Open,
    Close,
    Word(&'t str),
}

struct Cursor<'t> {
    rest: &'t str,
    place: Place,
}

impl<'t> Cursor<'t> {
    fn token(&mut self) -> Result<Option<(Place, Token<'t>)>, FedError> {
        self.skip_blank();
        let place = self.place;
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let token = match first {
            '(' | ')' => {
                self.advance(1);
                if first == '(' {
                    Token::Open
                } else {
                    Token::Close
                }
            }
            '"' => Token::Word(self.string(place)?),
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';' | '"');
                Token::Word(self.advance(self.rest.find(ends).unwrap_or(self.rest.len())))
            }
        };
        Ok(Some((place, token)))
    }

    fn string(&mut self, place: Place) -> Result<&'t str, FedError> {
        let inner = &self.rest[1..];
        match inner.find(['"', '\n']) {
            Some(end) if inner[end..].starts_with('"') => {
                let whole = self.advance(end + 2);
                Ok(&whole[1..=end])
            }
            _ => Err(at(place, FedErrorKind::UnclosedString)),
        }
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with(';') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// Takes that many bytes and keeps count of the place.
    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        for c in taken.chars() {
            if c == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            } else {
                self.place.column += 1;
            }
        }
        self.rest = rest;
        taken
    }
}
