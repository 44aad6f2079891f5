//! `sidewire doctor`: what this machine offers, in plain words.

pub mod kernel;
pub mod limits;
pub mod pair;

use crate::{library, print};

/// One line of the answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    grade: Grade,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// As it should be.
    Good,
    /// Works, but a user should know.
    Note,
    /// Nothing will be accelerated.
    Bad,
}

impl Finding {
    fn good(text: impl Into<String>) -> Finding {
        Finding {
            grade: Grade::Good,
            text: text.into(),
        }
    }

    fn note(text: impl Into<String>) -> Finding {
        Finding {
            grade: Grade::Note,
            text: text.into(),
        }
    }

    fn bad(text: impl Into<String>) -> Finding {
        Finding {
            grade: Grade::Bad,
            text: text.into(),
        }
    }

    /// `good` if it holds, else `bad`.
    fn of(holds: bool, good: &str, bad: &str) -> Finding {
        if holds {
            Finding::good(good)
        } else {
            Finding::bad(bad)
        }
    }
}

/// Prints everything; the exit code is 0 if connections are accelerated here.
pub fn doctor() -> i32 {
    match examine() {
        Ok(good) => i32::from(!good),
        Err(code) => code,
    }
}

/// Prints each part when it is known, for the last one takes its time. `Err` is the
/// exit code if stdout takes no more.
fn examine() -> Result<bool, i32> {
    let mut good = true;
    let mut tell = |findings: Vec<Finding>| -> Result<(), i32> {
        for f in findings {
            let mark = match f.grade {
                Grade::Good => "ok  ",
                Grade::Note => "note",
                Grade::Bad => "BAD ",
            };
            good &= f.grade != Grade::Bad;
            print(format!("{mark}  {}\n", f.text).as_bytes())?;
        }
        Ok(())
    };
    tell(kernel::findings())?;
    tell(limits::findings())?;
    tell(rules())?;
    match library::find() {
        Err(why) => tell(vec![Finding::bad(why)])?,
        Ok(library) => {
            let version = rdma_engine::abi::VERSION;
            let text = format!("library {}, layout version {version}", library.display());
            tell(vec![Finding::good(text)])?;
            tell(pair::findings(&library))?;
        }
    }
    Ok(good)
}

fn rules() -> Vec<Finding> {
    vec![match crate::policy::load(None) {
        Ok(rules) if rules.is_empty() => Finding::good("no policy rules"),
        Ok(rules) => {
            let n = rules.len();
            Finding::note(format!("{n} policy rules: see `sidewire policy check`"))
        }
        Err(wrong) => Finding::bad(format!(
            "{}: programs run on plain TCP until that is mended",
            wrong.message
        )),
    }]
}
