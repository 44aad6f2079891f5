/*
 * What every conformance program shares.
 *
 * A program knows nothing of Sidewire: it uses TCP sockets on 127.0.0.1 and prints what it observes. It is run as
 *
 *     NAME server PORTFILE     listens, writes its port to PORTFILE
 *     NAME client PORT         connects to that port
 *     NAME self                both ends in one process
 *
 * and the runner compares what each role prints, and how it ends, with a run on plain TCP. So a program must print
 * only what plain TCP makes certain: sums and not the sizes of single reads, "in time" and not milliseconds.
 *
 * The two roles take turns over a Unix socket (`tell`, `hear`, `meet`), so that the order of steps never depends on
 * the stream that is under test.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FN static __attribute__((unused))

enum side { SERVER, CLIENT };

/* ---- the watchdog: says where a program hung ---- */

static const char *volatile stage_now = "start";

/* Names the step that comes next, for the report of a hang. */
FN void stage(const char *name) { stage_now = name; }

FN void watchdog_fired(int signal_number)
{
    (void)signal_number;
    const char *where = stage_now;
    if (write(2, "hung at: ", 9) < 0 || write(2, where, strlen(where)) < 0 || write(2, "\n", 1) < 0)
        _exit(97);
    _exit(99);
}

/* A POSIX timer with the last real-time signal: no thread, no SIGALRM, nothing that a case could notice. */
FN void watchdog(void)
{
    const char *limit = getenv("SIDEWIRE_TEST_LIMIT");
    struct sigaction action = {.sa_handler = watchdog_fired};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX};
    struct itimerspec when = {.it_value = {limit ? atoi(limit) : 20, 0}};
    timer_t timer;
    sigaction(SIGRTMAX, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
        _exit(96);
}

/* ---- observations ---- */

/* One line of observation, written at once: nothing is lost when the program is killed later. */
FN __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[length++] = '\n';
    if (syscall(SYS_write, 1, line, length) != length)
        _exit(95);
}

/* A step that is not under test failed. */
FN void die(const char *what)
{
    fprintf(stderr, "failed at \"%s\": %s: %s\n", stage_now, what, strerrorname_np(errno) ?: "?");
    _exit(98);
}

#define MUST(call)                                                                                                     \
    ({                                                                                                                 \
        long result_ = (long)(call);                                                                                   \
        if (result_ < 0)                                                                                               \
            die(#call);                                                                                                \
        result_;                                                                                                       \
    })

/* "what: 5" or "what: EAGAIN". */
FN void say_result(const char *what, long result)
{
    if (result < 0)
        say("%s: %s", what, strerrorname_np(errno) ?: "?");
    else
        say("%s: %ld", what, result);
}

FN void say_yes(const char *what, int yes) { say("%s: %s", what, yes ? "yes" : "no"); }

static const struct { unsigned bit; const char *name; } event_names[] = {
    {POLLIN, "IN"}, {POLLPRI, "PRI"}, {POLLOUT, "OUT"}, {POLLRDNORM, "RDNORM"}, {POLLRDBAND, "RDBAND"},
    {POLLWRNORM, "WRNORM"}, {POLLWRBAND, "WRBAND"}, {POLLERR, "ERR"}, {POLLHUP, "HUP"}, {POLLRDHUP, "RDHUP"},
    {POLLNVAL, "NVAL"},
};

/* Bits of poll or epoll (they share their values) by name. */
FN void say_events(const char *what, long count, unsigned bits)
{
    char text[160] = "";
    if (count < 0) {
        say_result(what, count);
        return;
    }
    for (size_t i = 0; count && i < sizeof event_names / sizeof *event_names; i++)
        if (bits & event_names[i].bit)
            sprintf(text + strlen(text), " %s", event_names[i].name);
    say("%s: %ld%s", what, count, text);
}

/* What poll shows for `fd` now or within `ms`. */
FN void say_poll(const char *what, int fd, int events, int ms)
{
    struct pollfd entry = {.fd = fd, .events = events};
    int count = poll(&entry, 1, ms);
    say_events(what, count, (unsigned short)entry.revents);
}

/* Waits until poll shows all of `bits` (bounded by the watchdog), whatever order they come in. */
FN void await_poll(int fd, int bits)
{
    for (;;) {
        struct pollfd entry = {.fd = fd, .events = bits};
        if (poll(&entry, 1, 100) < 0 && errno != EINTR) /* the signal may be what is waited for */
            die("poll");
        if ((entry.revents & bits) == bits)
            return;
        usleep(1000);
    }
}

/* Waits until `count` bytes can be read from `fd`. */
FN void await_bytes(int fd, int count)
{
    for (int ready = 0;; usleep(1000)) {
        MUST(ioctl(fd, FIONREAD, &ready));
        if (ready >= count)
            return;
    }
}

/* ---- threads ---- */

/* Runs `body` in so many threads at once, until all have ended. */
FN void run_threads(int count, void *(*body)(void *))
{
    pthread_t threads[count];
    for (int i = 0; i < count; i++)
        MUST(-pthread_create(&threads[i], NULL, body, NULL));
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- time ---- */

FN long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000;
}

FN void sleep_ms(long ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}

/* "what: in time" if at least `low` and not absurdly more has gone by since `start`: the machine may be busy. */
FN void say_time(const char *what, long start, long low)
{
    long gone = now_ms() - start;
    if (gone >= low - 5 && gone <= low + 5000)
        say("%s: in time", what);
    else
        say("%s: %ld ms", what, gone);
}

/* ---- bytes ---- */

FN uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

/* A small generator, one for each thread that needs it. */
FN unsigned next_random(uint64_t *state, unsigned limit) { return (mix(*state += 0x9e3779b97f4a7c15ull) >> 33) % limit; }

FN void sum_bytes(uint64_t *sum, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *sum = (*sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ull;
}

/* The byte that belongs at `offset` of the stream called `seed`. */
FN unsigned char byte_at(unsigned seed, uint64_t offset)
{
    uint64_t word = ((offset >> 3) + seed) * 0x9e3779b97f4a7c15ull;
    return (word ^ (word >> 29)) >> (8 * (offset & 7));
}

FN void fill(unsigned seed, uint64_t offset, void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((unsigned char *)bytes)[i] = byte_at(seed, offset + i);
}

/* 1 if the bytes are those that belong there; tells where they differ, if not. */
FN int intact(unsigned seed, uint64_t offset, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (((const unsigned char *)bytes)[i] != byte_at(seed, offset + i)) {
            fprintf(stderr, "at \"%s\": byte %llu of stream %u is wrong\n", stage_now,
                    (unsigned long long)(offset + i), seed);
            return 0;
        }
    return 1;
}

FN void send_all(int fd, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;)
        done += MUST(send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL));
}

/* Reads `count` bytes, or fewer at the end of the stream. */
FN size_t recv_all(int fd, void *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        size_t got = MUST(recv(fd, (char *)bytes + done, count - done, 0));
        if (!got)
            break;
        done += got;
    }
    return done;
}

/* Sends `count` bytes of stream `seed`, from offset 0 on. */
FN void send_pattern(int fd, unsigned seed, size_t count)
{
    static __thread char piece[16384];
    for (size_t done = 0, size; done < count; done += size) {
        size = count - done < sizeof piece ? count - done : sizeof piece;
        fill(seed, done, piece, size);
        send_all(fd, piece, size);
    }
}

/* Reads and checks `count` bytes of stream `seed`, or what comes before the end; returns how many. */
FN size_t recv_pattern(int fd, unsigned seed, size_t count)
{
    static __thread char piece[16384];
    size_t done = 0;
    while (done < count) {
        size_t size = count - done < sizeof piece ? count - done : sizeof piece;
        size_t got = recv_all(fd, piece, size);
        if (!intact(seed, done, piece, got))
            exit(94);
        done += got;
        if (got < size)
            break;
    }
    return done;
}

/* `rounds` small round trips, the client first. */
FN void ping_pong(int fd, enum side side, int rounds)
{
    char message[100];
    for (int round = 0; round < rounds; round++) {
        size_t size = 1 + round * 37 % sizeof message;
        if (side == CLIENT) {
            fill(round, 0, message, size);
            send_all(fd, message, size);
        }
        if (recv_all(fd, message, size) != size || !intact(round, 0, message, size))
            die("ping_pong");
        if (side == SERVER)
            send_all(fd, message, size);
    }
}

/* Enough traffic for the stream to have been moved, in both directions, before the behaviour under test. */
FN void warm(int fd, enum side side)
{
    const char *before = stage_now;
    stage("warm");
    ping_pong(fd, side, 400);
    stage(before);
}

/* Sends without blocking until nothing more fits, for good: what is under way may still make room. Returns bytes. */
FN size_t fill_up(int fd)
{
    static char zeros[65536];
    size_t total = 0;
    for (int refused = 0; refused < 8;) {
        long sent = send(fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            total += sent;
            refused = 0;
        } else if (errno == EAGAIN) {
            refused++;
            sleep_ms(50);
        } else {
            die("fill_up");
        }
    }
    return total;
}

#include "epoll.h"
#include "roles.h"

#endif
