/*
 * A registration belongs to the open stream and the number it was made with: it outlives that number while a
 * duplicate is open. A duplicated epoll descriptor is the same set.
 */
#include "program.h"

static int set;

/* All events that are there, in a fixed order. */
static void all_events(const char *what, int ms)
{
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, ms);
    say_result(what, count);
    for (unsigned data = 0; data < 10; data++)
        for (int i = 0; i < count; i++)
            if (events[i].data.u32 == data)
                say_events(data == 1 ? "  by the first" : "  by the duplicate", 1, events[i].events);
}

static void server(int fd)
{
    char bytes[10];
    set = MUST(epoll_create1(0));
    struct epoll_event first = {.events = EPOLLIN, .data.u32 = 1}, second = {.events = EPOLLIN, .data.u32 = 2};
    warm(fd, SERVER);
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &first));
    int copy = MUST(dup(fd));
    say_result("ADD of the duplicate", epoll_ctl(set, EPOLL_CTL_ADD, copy, &second));
    all_events("nothing there", 20);
    meet();
    await_bytes(fd, 10);
    all_events("10 bytes there", 5000);
    MUST(epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL));
    all_events("duplicate deleted", 5000);
    recv_all(copy, bytes, 10);
    all_events("all read", 20);
    MUST(close(fd));
    meet();
    await_bytes(copy, 10);
    all_events("the first is closed, its registration lives", 5000);
    say_result("DEL of the first", epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    say_result("DEL of the duplicate", epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL));
    recv_all(copy, bytes, 10);

    int other = MUST(fcntl(set, F_DUPFD, 100));
    MUST(close(set));
    set = other;
    meet();
    all_events("by a duplicate of the set", 5000);
    recv_all(copy, bytes, 10);
    warm(copy, SERVER);
    MUST(dup2(copy, fd)); /* the old number names the stream again */
    say_result("DEL of the first", epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    meet();
    await_bytes(copy, 10);
    all_events("deleted", 20);
    recv_all(copy, bytes, 10);
    meet();
}

static void client(int fd)
{
    char bytes[10] = "";
    warm(fd, CLIENT);
    for (int i = 0; i < 4; i++) {
        meet();
        send_all(fd, bytes, sizeof bytes);
        if (i == 2)
            warm(fd, CLIENT);
    }
    meet();
}

PAIR(server, client)
