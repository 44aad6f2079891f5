/* A signal while poll, select or epoll_wait is blocked on a stream: always EINTR, SA_RESTART or not. */
#include "pester.h"

static void server(int fd)
{
    int set = MUST(epoll_create1(0));
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec long_time = {15, 0};
    fd_set readable;
    FD_ZERO(&readable);
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    for (int round = 0; round < 2; round++) {
        handle(SIGUSR1, round ? SA_RESTART : 0);
        say(round ? "with SA_RESTART" : "without SA_RESTART");
        INTERRUPTED("poll", poll(&entry, 1, -1));
        INTERRUPTED("poll with a limit", poll(&entry, 1, 15000));
        INTERRUPTED("ppoll", ppoll(&entry, 1, &long_time, NULL));
        FD_SET(fd, &readable);
        INTERRUPTED("select", select(fd + 1, &readable, NULL, NULL, NULL));
        FD_SET(fd, &readable);
        INTERRUPTED("pselect", pselect(fd + 1, &readable, NULL, NULL, &long_time, NULL));
        INTERRUPTED("epoll_wait", epoll_wait(set, &event, 1, -1));
        INTERRUPTED("epoll_pwait", epoll_pwait(set, &event, 1, 15000, NULL));
    }
}

static void client(int fd)
{
    warm(fd, CLIENT);
    hear(); /* the server's end */
}

PAIR(server, client)
