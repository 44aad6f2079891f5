//! What a hooked call costs where nothing is accelerated.
//!
//! A system call takes some hundred nanoseconds and varies by more than a hook costs, from process to process
//! and from minute to minute. So each process measures the libc call *and* the bare system call in alternation,
//! on twin descriptors in the same state; the difference is what the library stands for, natively (libc's own
//! wrapper) and under Sidewire (hook and wrapper). The kernel's own time cancels out.
//!
//! The peer of the streams is the measuring process, which is never accelerated. Each call is made in a state in
//! which the kernel has little to do: 1-byte receives from a filled queue, 1-byte sends behind a closed window.

use super::{from_json, myself};
use crate::experiment::{End, Experiment, Failure, Run, Values};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::{Duration, Instant};

/// Calls per timed batch.
const BATCH: usize = 1000;

/// A command on the control stream: what to do, and with how many bytes on each twin.
const FILL: u8 = b'F';
const DRAIN: u8 = b'D';

/// Nanoseconds per call above the bare system call.
#[derive(Serialize, Deserialize)]
pub struct Report {
    read: f64,
    send: f64,
    recv: f64,
}

pub fn measure(port: u16, rounds: u32) -> io::Result<Report> {
    let connect = || TcpStream::connect(("127.0.0.1", port));
    let (mut control, twins) = (connect()?, [connect()?, connect()?]);
    let fds = [twins[0].as_raw_fd(), twins[1].as_raw_fd()];
    control.set_nodelay(true)?;
    Ok(Report {
        read: median_cost(rounds, measure_read)?,
        recv: median_cost(rounds, |flip| measure_recv(&mut control, fds, flip))?,
        send: median_cost(rounds, |flip| measure_send(&mut control, fds, flip))?,
    })
}

/// The median over all rounds; each round measures both calls, in an order that alternates.
fn median_cost(rounds: u32, mut round: impl FnMut(bool) -> io::Result<f64>) -> io::Result<f64> {
    let mut costs = Vec::new();
    for index in 0..rounds {
        costs.push(round(index % 2 == 1)?);
    }
    costs.sort_by(f64::total_cmp);
    Ok(costs.get(costs.len() / 2).copied().unwrap_or(0.0))
}

/// Nanoseconds per call of `call`, which must return 1 each time.
fn time(mut call: impl FnMut() -> isize) -> io::Result<f64> {
    let start = Instant::now();
    for _ in 0..BATCH {
        if call() != 1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / BATCH as f64)
}

/// Cost of `hooked` above `bare`, with `bare` first if `flip`.
fn difference(
    flip: bool,
    hooked: impl FnMut() -> isize,
    bare: impl FnMut() -> isize,
) -> io::Result<f64> {
    if flip {
        let bare = time(bare)?;
        return Ok(time(hooked)? - bare);
    }
    Ok(time(hooked)? - time(bare)?)
}

fn measure_read(flip: bool) -> io::Result<f64> {
    let (reader, mut writer) = pipe()?;
    writer.write_all(&[0; 2 * BATCH])?;
    let (fd, mut byte) = (reader.as_raw_fd(), 0u8);
    let pointer = &raw mut byte;
    // SAFETY: one writable byte.
    difference(
        flip,
        || unsafe { libc::read(fd, pointer.cast(), 1) },
        || bare::read(fd, pointer),
    )
}

fn pipe() -> io::Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors, which nobody else owns.
    unsafe {
        match libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((File::from_raw_fd(fds[0]), File::from_raw_fd(fds[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn measure_recv(control: &mut TcpStream, twins: [RawFd; 2], flip: bool) -> io::Result<f64> {
    order(control, FILL, [BATCH as u32; 2])?;
    for fd in twins {
        wait_queued(fd, BATCH)?;
    }
    let mut byte = 0u8;
    let pointer = &raw mut byte;
    let [hooked, plain] = twins;
    // SAFETY: one writable byte.
    difference(
        flip,
        || unsafe { libc::recv(hooked, pointer.cast(), 1, 0) },
        || bare::recv(plain, pointer),
    )
}

fn measure_send(control: &mut TcpStream, twins: [RawFd; 2], flip: bool) -> io::Result<f64> {
    let mut sent = [BATCH as u32; 2];
    for (fd, sent) in twins.into_iter().zip(&mut sent) {
        *sent += close_window(fd)?;
    }
    let byte = 0x5au8;
    let pointer = &raw const byte;
    let [hooked, plain] = twins;
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: one readable byte.
    let cost = difference(
        flip,
        || unsafe { libc::send(hooked, pointer.cast(), 1, flags) },
        || bare::send(plain, pointer, flags),
    );
    order(control, DRAIN, sent)?;
    cost
}

/// Send until bytes stay behind in our own queue; says how many were sent.
fn close_window(fd: RawFd) -> io::Result<u32> {
    const SIOCOUTQNSD: libc::c_ulong = 0x894B;
    let block = [0x5au8; 1024];
    let mut sent = 0;
    for _ in 0..100_000 {
        let mut unsent: libc::c_int = 0;
        // SAFETY: a readable block, and an int for the answer.
        let count = unsafe {
            libc::ioctl(fd, SIOCOUTQNSD as _, &raw mut unsent);
            if unsent > 0 {
                return Ok(sent);
            }
            libc::send(fd, block.as_ptr().cast(), block.len(), libc::MSG_DONTWAIT)
        };
        match count {
            1.. => sent += count as u32,
            _ => return Err(io::Error::last_os_error()),
        }
    }
    Err(io::Error::other("the window does not close"))
}

fn wait_queued(fd: RawFd, bytes: usize) -> io::Result<()> {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        let mut queued: libc::c_int = 0;
        // SAFETY: an int for the answer.
        unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut queued) };
        if queued as usize >= bytes {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("the peer did not fill the queue"))
}

fn order(control: &mut TcpStream, what: u8, bytes: [u32; 2]) -> io::Result<()> {
    let mut message = vec![what];
    bytes
        .iter()
        .for_each(|count| message.extend(count.to_le_bytes()));
    control.write_all(&message)?;
    control.read_exact(&mut [0])
}

/// The unaccelerated peer: obeys orders until the control stream ends.
fn peer(listener: TcpListener) -> io::Result<()> {
    let accept = || Ok::<_, io::Error>(listener.accept()?.0);
    let (mut control, mut twins) = (accept()?, [accept()?, accept()?]);
    control.set_nodelay(true)?;
    let mut message = [0; 9];
    while control.read_exact(&mut message).is_ok() {
        for (twin, field) in twins.iter_mut().zip(message[1..].chunks_exact(4)) {
            let count = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
            let mut bytes = vec![0; count as usize];
            match message[0] {
                FILL => twin.write_all(&bytes)?,
                _ => twin.read_exact(&mut bytes)?,
            }
        }
        control.write_all(&[1])?;
    }
    Ok(())
}

/// A listener whose connections have a small receive window, so that it soon closes.
fn small_window_listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let size: libc::c_int = 8192;
    // SAFETY: a valid int and its size.
    let result = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
        libc::setsockopt(
            listener.as_raw_fd(),
            level,
            option,
            (&raw const size).cast(),
            size_of_val(&size) as u32,
        )
    };
    if result == 0 {
        Ok(listener)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// One run; the number of rounds grows with the run's length.
pub struct HookCost {
    /// Is it clear from the beginning that the streams stay on TCP? Else the library looks
    /// for their other end for some ten seconds, and follows their calls meanwhile.
    pub settled: bool,
}

impl Experiment for HookCost {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let listener = small_window_listener()?;
        let port = listener.local_addr()?.port().to_string();
        let peer = std::thread::spawn(move || peer(listener));
        let mut command = run.command(&myself()?);
        command.args(["micro", "hookcost", &port, &(300 * run.seconds).to_string()]);
        if self.settled {
            command.env("SIDEWIRE_TRANSPORT", "tcp");
        }
        let report: Report =
            from_json(&run.start(command, "hookcost", End::Client)?.wait()?.stdout)?;
        peer.join().map_err(|_| "the peer panicked".to_owned())??;
        Ok(Values::from([
            ("read", report.read),
            ("send", report.send),
            ("recv", report.recv),
        ]))
    }
}

/// System calls without libc, for no preload library to see.
mod bare {
    use std::os::fd::RawFd;

    pub fn read(fd: RawFd, byte: *mut u8) -> isize {
        call(libc::SYS_read, fd, byte as usize, 0)
    }

    pub fn recv(fd: RawFd, byte: *mut u8) -> isize {
        call(libc::SYS_recvfrom, fd, byte as usize, 0)
    }

    pub fn send(fd: RawFd, byte: *const u8, flags: i32) -> isize {
        call(libc::SYS_sendto, fd, byte as usize, flags as usize)
    }

    /// Six arguments: descriptor, buffer, length 1, flags, and no address.
    #[cfg(target_arch = "x86_64")]
    fn call(number: libc::c_long, fd: RawFd, buffer: usize, flags: usize) -> isize {
        let result: isize;
        // SAFETY: the callers pass a valid one-byte buffer; the kernel clobbers rcx and r11 only.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number as isize => result,
                in("rdi") fd as usize, in("rsi") buffer, in("rdx") 1usize,
                in("r10") flags, in("r8") 0usize, in("r9") 0usize,
                lateout("rcx") _, lateout("r11") _, options(nostack),
            );
        }
        result
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn call(number: libc::c_long, fd: RawFd, buffer: usize, flags: usize) -> isize {
        // SAFETY: the callers pass a valid one-byte buffer.
        unsafe { libc::syscall(number, fd, buffer, 1usize, flags, 0usize, 0usize) as isize }
    }
}
