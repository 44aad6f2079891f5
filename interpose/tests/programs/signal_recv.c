/* A signal while recv and its kin are blocked: EINTR without SA_RESTART, and with it they go on until bytes come. */
#include "pester.h"

static void server(int fd)
{
    char bytes[200];
    struct iovec part = {bytes, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct timeval long_time = {15, 0};
    warm(fd, SERVER);

    handle(SIGUSR1, 0);
    INTERRUPTED("recv", recv(fd, bytes, 10, 0));
    INTERRUPTED("read", read(fd, bytes, 10));
    INTERRUPTED("readv", readv(fd, &part, 1));
    INTERRUPTED("recvmsg", recvmsg(fd, &message, 0));
    INTERRUPTED("recv, peek", recv(fd, bytes, 10, MSG_PEEK));
    INTERRUPTED("recv, waiting for all", recv(fd, bytes, 10, MSG_WAITALL));

    handle(SIGUSR1, SA_RESTART);
    RESTARTED("recv, restarted", recv(fd, bytes, 10, 0));
    RESTARTED("read, restarted", read(fd, bytes, 10));
    RESTARTED("recvmsg, restarted", recvmsg(fd, &message, 0));
    RESTARTED("recv, waiting for all", recv(fd, bytes, 10, MSG_WAITALL));

    /* With a time limit there is no restart. */
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time));
    INTERRUPTED("recv with a limit", recv(fd, bytes, 10, 0));
}

static void client(int fd)
{
    warm(fd, CLIENT);
    while (hear())
        send_all(fd, "0123456789", 10);
}

PAIR(server, client)
