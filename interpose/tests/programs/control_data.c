/* Control data of recvmsg: what TCP_INQ and SO_TIMESTAMPNS add to it, when they are asked for on a busy stream. */
#include "program.h"

#ifndef TCP_CM_INQ
#define TCP_CM_INQ 36
#endif

/* Receives `count` bytes and says what came with them. */
static void say_control(const char *what, int fd, int count, int flags)
{
    char bytes[200], control[256];
    struct iovec part = {bytes, count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    long got = recvmsg(fd, &message, flags);
    say_result(what, got);
    if (got < 0)
        return;
    say("flags: %x", message.msg_flags);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_TCP && c->cmsg_type == TCP_CM_INQ)
            say("in the queue: %d", *(int *)CMSG_DATA(c));
        else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
            say("a time: %s", ((struct timespec *)CMSG_DATA(c))->tv_sec > 1000000000 ? "yes" : "no");
        else
            say("something else: %d %d", c->cmsg_level, c->cmsg_type);
    }
}

static void server(int fd)
{
    int on = 1, off = 0;
    warm(fd, SERVER);
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
    ping_pong(fd, SERVER, 20);
    meet();
    await_bytes(fd, 100);
    say_control("of 100", fd, 60, 0);
    say_control("peeked", fd, 10, MSG_PEEK);
    say_control("not waited for", fd, 10, MSG_DONTWAIT);
    say_control("the rest", fd, 30, MSG_WAITALL);
    say_control("nothing there", fd, 10, MSG_DONTWAIT);
    MUST(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on));
    ping_pong(fd, SERVER, 20);
    meet();
    say_control("waited for", fd, 40, MSG_WAITALL);
    meet();
    await_bytes(fd, 40);
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &off, sizeof off));
    say_control("a time alone", fd, 40, 0);
    MUST(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &off, sizeof off));
    ping_pong(fd, SERVER, 20);
    meet();
    say_control("neither", fd, 40, MSG_WAITALL);
    meet();
    say_control("at the end", fd, 40, 0);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    ping_pong(fd, CLIENT, 20);
    meet();
    send_pattern(fd, 1, 100);
    ping_pong(fd, CLIENT, 20);
    meet();
    sleep_ms(20);
    send_pattern(fd, 1, 40);
    meet();
    send_pattern(fd, 1, 40);
    ping_pong(fd, CLIENT, 20);
    meet();
    send_pattern(fd, 1, 40);
    meet();
}

PAIR(server, client)
