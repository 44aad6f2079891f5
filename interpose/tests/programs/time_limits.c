/* SO_RCVTIMEO and SO_SNDTIMEO: how long calls wait, what they return, and what getsockopt shows. */
#include "program.h"

#define TIMED(what, low, call)                                                                                         \
    do {                                                                                                               \
        long start_ = now_ms();                                                                                        \
        stage(what);                                                                                                   \
        long result_ = (call);                                                                                         \
        say_result(what, result_);                                                                                     \
        say_time("  it took", start_, low);                                                                            \
    } while (0)

static void server(int fd)
{
    char bytes[100];
    struct timeval limit = {0, 200000}, seen, none = {0, 0}, bad = {0, 2000000};
    struct iovec part = {bytes, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    socklen_t length = sizeof seen;
    warm(fd, SERVER);
    say_result("a bad limit", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bad, sizeof bad));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &seen, &length));
    say("SO_RCVTIMEO: %ld.%06ld", (long)seen.tv_sec, (long)seen.tv_usec);
    TIMED("recv", 200, recv(fd, bytes, 10, 0));
    TIMED("read", 200, read(fd, bytes, 10));
    TIMED("recvmsg", 200, recvmsg(fd, &message, 0));
    TIMED("recv, peek", 200, recv(fd, bytes, 10, MSG_PEEK));
    TIMED("recv, no waiting", 0, recv(fd, bytes, 10, MSG_DONTWAIT));
    TIMED("poll knows no such limit", 300, poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 300));
    meet();
    await_bytes(fd, 30);
    TIMED("waiting for all of 100, 30 there", 200, recv(fd, bytes, 100, MSG_WAITALL));
    meet();
    TIMED("bytes in time", 0, recv(fd, bytes, 10, 0));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
    meet();
    TIMED("without a limit", 300, recv(fd, bytes, 10, 0));
    meet();
    meet();
}

static void client(int fd)
{
    static char bytes[65536];
    struct timeval limit = {0, 200000};
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, 30);
    meet();
    sleep_ms(20);
    send_all(fd, bytes, 10);
    meet();
    sleep_ms(400);
    send_all(fd, bytes, 10);
    meet();
    MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
    say("filled: %s", fill_up(fd) > 0 ? "yes" : "no");
    TIMED("send", 200, send(fd, bytes, 10, 0));
    TIMED("write", 200, write(fd, bytes, 10));
    TIMED("send, no waiting", 0, send(fd, bytes, 10, MSG_DONTWAIT));
    meet();
}

PAIR(server, client)
