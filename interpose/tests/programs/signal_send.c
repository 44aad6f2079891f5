/* A signal while send is blocked by a peer that does not read: EINTR or a restart. */
#include "pester.h"

static size_t in_all;

static void add(long sent) { in_all += sent > 0 ? sent : 0; }

static void server(int fd)
{
    static char bytes[4 << 20];
    struct iovec part = {bytes, 5000};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    warm(fd, SERVER);
    in_all = fill_up(fd);
    handle(SIGUSR1, 0);
    add(INTERRUPTED("send", send(fd, bytes, 5000, 0)));
    add(INTERRUPTED("write", write(fd, bytes, 5000)));
    add(INTERRUPTED("sendmsg", sendmsg(fd, &message, 0)));

    handle(SIGUSR1, SA_RESTART);
    add(RESTARTED("send, restarted", send(fd, bytes, 5000, 0))); /* the peer reads after a while */
    MUST(shutdown(fd, SHUT_WR));
    MUST(send(turns, &in_all, sizeof in_all, 0));
    meet();
}

static void client(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    warm(fd, CLIENT);
    hear();
    for (size_t got; (got = recv_all(fd, bytes, sizeof bytes)); total += got)
        ;
    MUST(recv(turns, &in_all, sizeof in_all, MSG_WAITALL));
    say_yes("all that was sent", total == in_all);
    meet();
}

PAIR(server, client)
