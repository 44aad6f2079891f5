//! `sidewire COMMAND ...`

#![no_main]

use std::ffi::{c_char, c_int};

/// Without Rust's own start-up code, which would change what the program that
/// we run inherits: SIGPIPE's disposition, closed standard streams.
#[no_mangle]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    sidewire_launcher::main(sidewire_launcher::Call::Sidewire)
}
