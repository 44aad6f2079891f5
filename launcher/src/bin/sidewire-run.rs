//! `sidewire-run PROGRAM ARGS`, the same as `sidewire run PROGRAM ARGS`.

#![no_main]

use std::ffi::{c_char, c_int};

/// As in `sidewire`.
#[no_mangle]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    sidewire_launcher::main(sidewire_launcher::Call::Run)
}
