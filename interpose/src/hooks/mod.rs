//! The hooked symbols: pointers to slices, one call into safe code, nothing else.
//!
//! One file for each family of calls. Everything here is `extern "C-unwind"`:
//! the real functions are cancellation points, and a cancellation is a forced
//! unwind through our frames (pthreads(7)).

mod aliases;
mod cancel;
mod confine;
mod data_in;
mod data_out;
mod exec_list;
mod fork;
mod lifecycle;
mod makers;
mod options;
mod pages;
mod readiness;
mod signal;
mod spawn;
mod stdio;
mod syscall;

/// Defines hooks. In unit tests they are plain functions, so that the test
/// program's own calls are not hooked.
#[macro_export]
macro_rules! hooks {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block)*) => {$(
        $(#[$doc])*
        /// # Safety
        /// As the C function of that name (its man page).
        #[cfg_attr(not(test), no_mangle)]
        #[allow(clippy::too_many_arguments, non_snake_case)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret $body
    )*};
}
