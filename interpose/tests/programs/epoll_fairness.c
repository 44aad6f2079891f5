/*
 * Timer, pipe, eventfd, listening socket and a second stream next to a stream that is always ready: with room for one
 * event at a time, and with room for all, each of them is seen soon.
 */
#include "program.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>

enum { BUSY, TIMER, PIPE, EVENT, LISTENER, QUIET, KINDS };
static const char *names[] = {"busy stream", "timer", "pipe", "eventfd", "listener", "quiet stream"};

static void rounds_until_all(int set, int room, int busy)
{
    int seen[KINDS] = {0}, missing = KINDS;
    char byte;
    for (int round = 0; round < 200 && missing; round++) {
        struct epoll_event events[KINDS];
        int count = MUST(epoll_wait(set, events, room, 1000));
        for (int i = 0; i < count; i++)
            if (!seen[events[i].data.u32]++)
                missing--;
        recv(busy, &byte, 1, MSG_DONTWAIT); /* a little of very much */
    }
    for (int i = 0; i < KINDS; i++)
        say("room for %d: %s %s", room, names[i], seen[i] ? "seen" : "starved");
}

static void server(int listener)
{
    int busy = accept_one(listener), quiet = accept_one(listener), ends[2];
    warm(busy, SERVER);
    warm(quiet, SERVER);
    int timer = MUST(timerfd_create(CLOCK_MONOTONIC, 0)), event = MUST(eventfd(1, 0));
    struct itimerspec when = {.it_value.tv_nsec = 1, .it_interval.tv_nsec = 1000000};
    MUST(timerfd_settime(timer, 0, &when, NULL));
    MUST(pipe(ends));
    MUST(write(ends[1], "x", 1));
    int set = MUST(epoll_create1(0));
    int descriptors[KINDS] = {busy, timer, ends[0], event, listener, quiet};
    for (int i = 0; i < KINDS; i++) {
        struct epoll_event registration = {.events = EPOLLIN, .data.u32 = i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, descriptors[i], &registration));
    }
    meet();
    hear(); /* all is under way: bytes on both streams, one more connection */
    await_bytes(busy, 10000);
    await_bytes(quiet, 1);
    await_poll(listener, POLLIN);
    rounds_until_all(set, 1, busy);
    rounds_until_all(set, KINDS, busy);
    meet();
}

static void client(int port)
{
    int busy = connect_to(port), quiet = connect_to(port);
    warm(busy, CLIENT);
    warm(quiet, CLIENT);
    meet();
    send_pattern(busy, 1, 10000);
    send_all(quiet, "x", 1);
    connect_to(port);
    tell();
    meet();
}

ROLES(server, client)
