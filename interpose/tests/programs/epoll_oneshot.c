/* EPOLLONESHOT: one event, then none, whatever comes, until the next MOD. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    int set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 1};
    warm(fd, SERVER);
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (int round = 0; round < 20; round++) {
        meet();
        if (await_epoll(set, 5000, "10 bytes came").data.u64 != (uint64_t)round + 1)
            die("data of another registration");
        if (round % 5 == 0)
            await_epoll(set, 20, "unread, not again");
        meet();
        await_bytes(fd, 20);
        await_epoll(set, round % 5 ? 0 : 20, "10 more came, still not");
        event = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.u64 = round + 2};
        if (round % 2) { /* bytes that are there at the MOD are shown */
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
            await_epoll(set, 5000, "shown by MOD");
        }
        recv_all(fd, bytes, 20);
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
        await_epoll(set, 0, "all read");
    }
    meet();
    await_epoll(set, 5000, "the end came");
    await_epoll(set, 20, "not again");
}

static void client(int fd)
{
    char bytes[10] = "";
    warm(fd, CLIENT);
    for (int i = 0; i < 40; i++) {
        meet();
        send_all(fd, bytes, sizeof bytes);
    }
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

PAIR(server, client)
