/* poll, ppoll, select, pselect: time limits, every bit, descriptors that are closed, negative or named twice. */
#include "program.h"

static volatile nfds_t far_too_many = 1u << 30; /* which the compiler must not know */

enum { EVERY = POLLIN | POLLPRI | POLLOUT | POLLRDNORM | POLLRDBAND | POLLWRNORM | POLLWRBAND | POLLRDHUP };

static void limits(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec limit = {0, 120000000}, none = {0, 0}, bad = {0, 2000000000};
    struct timeval wait = {0, 120000}, now = {0, 0};
    fd_set readable;
    long start = now_ms();
    say_result("poll", poll(&entry, 1, 120));
    say_time("  it took", start, 120);
    start = now_ms();
    say_result("ppoll", ppoll(&entry, 1, &limit, NULL));
    say_time("  it took", start, 120);
    say("  limit untouched: %ld", limit.tv_nsec);
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    start = now_ms();
    say_result("select", select(fd + 1, &readable, NULL, NULL, &wait));
    say_time("  it took", start, 120);
    say("  set: %d, time left: %ld", FD_ISSET(fd, &readable), (long)wait.tv_usec);
    FD_SET(fd, &readable);
    start = now_ms();
    say_result("pselect", pselect(fd + 1, &readable, NULL, NULL, &limit, NULL));
    say_time("  it took", start, 120);
    FD_SET(fd, &readable);
    say_result("select, now", select(fd + 1, &readable, NULL, NULL, &now));
    say_result("ppoll, now", ppoll(&entry, 1, &none, NULL));
    say_result("poll, now", poll(&entry, 1, 0));
    say_result("ppoll, bad limit", ppoll(&entry, 1, &bad, NULL));
    start = now_ms();
    say_result("poll of none", poll(NULL, 0, 50));
    say_time("  it took", start, 50);
}

static void readable_now(int fd)
{
    fd_set in, out, other;
    struct timeval wait = {10, 0};
    int closed = MUST(dup(0));
    MUST(close(closed));
    struct pollfd entries[5] = {{.fd = fd, .events = EVERY},
                                {.fd = -1, .events = POLLIN},
                                {.fd = closed, .events = POLLIN},
                                {.fd = fd, .events = POLLOUT},
                                {.fd = fd, .events = 0}};
    say_result("poll of five", poll(entries, 5, 5000));
    for (int i = 0; i < 5; i++)
        say_events("  entry", 1, (unsigned short)entries[i].revents);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    out = other = in;
    say_result("select", select(fd + 1, &in, &out, &other, &wait));
    say("  in %d, out %d, other %d", FD_ISSET(fd, &in), FD_ISSET(fd, &out), FD_ISSET(fd, &other));
    say_yes("  time left", wait.tv_sec > 0);
    FD_SET(fd, &in);
    say_result("select, no limit", select(fd + 1, &in, NULL, NULL, NULL));
    FD_ZERO(&in);
    FD_SET(closed, &in);
    say_result("select, closed", select(closed + 1, &in, NULL, NULL, &wait));
    FD_ZERO(&in);
    FD_SET(fd, &in);
    say_result("select, number too low", select(fd, &in, NULL, NULL, &(struct timeval){0, 0}));
    say_result("poll, too many", poll(entries, far_too_many, 0));
}

static void server(int fd)
{
    char byte;
    warm(fd, SERVER);
    limits(fd);
    meet();
    await_bytes(fd, 1);
    readable_now(fd);
    recv_all(fd, &byte, 1);
    meet();
    /* Asleep when it comes. */
    fd_set in;
    for (int i = 0; i < 4; i++) {
        struct pollfd entry = {.fd = fd, .events = POLLRDNORM};
        FD_ZERO(&in);
        FD_SET(fd, &in);
        if (i < 2) {
            int count = i == 0 ? poll(&entry, 1, -1) : ppoll(&entry, 1, NULL, NULL);
            say_events(i == 0 ? "poll, asleep" : "ppoll, asleep", count, entry.revents);
        }
        if (i == 2)
            say_result("select, asleep", select(fd + 1, &in, NULL, NULL, NULL));
        if (i == 3)
            say_result("pselect, asleep", pselect(fd + 1, &in, NULL, NULL, NULL, NULL));
        recv_all(fd, &byte, 1);
        meet();
    }
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    send_all(fd, "x", 1);
    meet();
    for (int i = 0; i < 4; i++) {
        sleep_ms(60);
        send_all(fd, "x", 1);
        meet();
    }
}

PAIR(server, client)
