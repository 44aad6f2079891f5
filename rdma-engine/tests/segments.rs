//! Segments: what is mapped, and what is refused.

#![cfg(not(loom))]

use rdma_engine::abi::segment::SIZE;
use rdma_engine::ring::Memory;
use rdma_engine::segment::{create, Segment};
use rdma_engine::sync::Ordering;
use rdma_engine::sys;

/// A memfd of `size` bytes with `seals`.
fn memfd(flags: u32, size: usize, seals: i32) -> Option<i32> {
    // SAFETY: a constant C string; no other memory is passed.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING | flags);
        if fd < 0 || libc::ftruncate(fd, size as i64) != 0 {
            return None;
        }
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, seals), 0);
        Some(fd)
    }
}

#[test]
fn both_ends_map_the_same_memory() {
    let fd = create().unwrap();
    let a = Segment::map(fd, true).expect("the creator's");
    let b = Segment::map(fd, false).expect("the other end's");
    sys::close(fd);
    assert_ne!(a.base(), b.base());
    for d in [0, 1] {
        a.direction(d).cut_at.store(7 + d as u64, Ordering::Relaxed);
        a.ring(d).header(64).store(9 + d as u64, Ordering::Relaxed);
        assert_eq!(b.direction(d).cut_at.load(Ordering::Relaxed), 7 + d as u64);
        assert_eq!(b.ring(d).header(64).load(Ordering::Relaxed), 9 + d as u64);
    }
    // SAFETY: nobody uses them any more.
    unsafe {
        a.unmap();
        b.unmap();
    }
}

#[test]
fn a_segment_without_a_header_is_refused() {
    let fd = create().unwrap();
    assert!(Segment::map(fd, false).is_none());
    assert!(Segment::map(fd, true).is_some());
    assert!(Segment::map(fd, false).is_some());
    sys::close(fd);
}

#[test]
fn memory_that_could_fault_is_refused() {
    let sealed = libc::F_SEAL_SHRINK;
    for (size, seals) in [
        (SIZE, 0),
        (SIZE - 4096, sealed),
        (4096, sealed),
        (SIZE, libc::F_SEAL_GROW),
    ] {
        let fd = memfd(0, size, seals).unwrap();
        assert!(Segment::map(fd, true).is_none(), "{size} {seals}");
        sys::close(fd);
    }
    let fd = memfd(0, SIZE, sealed).unwrap();
    assert!(Segment::map(fd, true).is_some());
    sys::close(fd);
    // Sealed, of the right size, and yet it faults where no huge page is left.
    if let Some(fd) = memfd(libc::MFD_HUGETLB, SIZE.next_multiple_of(2 << 20), sealed) {
        assert!(Segment::map(fd, true).is_none());
        sys::close(fd);
    }
}

#[test]
fn what_is_no_memory_is_refused() {
    // SAFETY: constant C strings; pipe(2) fills two descriptors.
    unsafe {
        let null = libc::open(c"/dev/zero".as_ptr(), libc::O_RDWR);
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        for fd in [null, pipe[0], -1, 1 << 20] {
            assert!(Segment::map(fd, true).is_none());
        }
        for fd in [null, pipe[0], pipe[1]] {
            sys::close(fd);
        }
    }
}

#[test]
fn a_segment_is_sealed_and_costs_nothing_yet() {
    let fd = create().unwrap();
    // SAFETY: no memory but the struct that fstat(2) fills.
    unsafe {
        assert_ne!(libc::ftruncate(fd, 0), 0, "it can shrink");
        assert_ne!(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE), 0);
        assert_ne!(libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC, 0);
        let mut st: libc::stat = core::mem::zeroed();
        assert_eq!(libc::fstat(fd, &mut st), 0);
        assert_eq!(st.st_blocks, 0);
    }
    sys::close(fd);
}
