//! The words of the chunks, by themselves.

use crate::abi::record::Pos;
use crate::ring::chunks::Chunks;

/// A frame has seen that a chunk is left, and says so only when the chunk has been
/// emptied and is in use again.
#[test]
fn a_frame_that_is_late_leaves_no_later_use_of_a_chunk() {
    let chunks = Chunks::new();
    chunks.begin();
    let end = Pos::new(64, 100);
    let first = chunks.word(end);
    let (next, word) = chunks.take(first, 2).expect("the other one");
    assert_eq!(next, 1);
    chunks.leave(end, first);
    assert!(!Chunks::is_current(chunks.word(end)));
    chunks.sweep(end.count() + 1);
    let (again, second) = chunks.take(word, 2).expect("the first one");
    assert_eq!(again, 0);

    chunks.leave(end, first);
    assert_eq!(chunks.word(end), second, "its second use has ended");
    // Who knows of this use may.
    chunks.leave(end, second);
    assert!(!Chunks::is_current(chunks.word(end)));
}
