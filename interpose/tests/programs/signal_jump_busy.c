/*
 * A handler leaves epoll_wait, poll and select by siglongjmp, again and again, at any instruction and not only where
 * they are blocked; what comes later is still reported.
 */
#include "numbered.h"
#include <setjmp.h>

enum { JUMPS = 3000 };

static sigjmp_buf back;
static volatile sig_atomic_t armed;

static void jump(int signal_number)
{
    (void)signal_number;
    if (armed) {
        armed = 0;
        siglongjmp(back, 1);
    }
}

static void wait_once(int way, int fd, int set)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event;
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    if (way == 0)
        epoll_wait(set, &event, 1, -1);
    if (way == 1)
        poll(&entry, 1, -1);
    if (way == 2)
        select(fd + 1, &readable, NULL, NULL, NULL);
}

static void server(int fd)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec when = {{0}, {0}}, never = {{0}, {0}};
    struct sigaction action = {.sa_handler = jump};
    static volatile int jumps;
    static uint32_t next;
    static uint64_t random;
    static char byte;
    static timer_t timer;
    static int set;
    set = MUST(epoll_create1(0));
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    stage("jumps");
    while (jumps < JUMPS) {
        when.it_value.tv_nsec = 1 + next_random(&random, 60000);
        if (!sigsetjmp(back, 1)) {
            armed = 1;
            MUST(timer_settime(timer, 0, &when, NULL));
            /* Until it has come: there may be bytes each time. */
            while (armed)
                wait_once(jumps / 100 % 3, fd, set);
        }
        jumps++;
        MUST(timer_settime(timer, 0, &never, NULL));
        /* Only a wait that can't be left now. */
        wait_once(jumps % 4 ? 0 : jumps % 3, fd, set);
        for (int i = 0; i < 3; i++)
            if (!receive_numbered(fd, 0, &next))
                die("the end");
        for (int i = 0; i < 100 && jumps % 4 == 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0; i++)
            receive_numbered(fd, 0, &next); /* so that it is sometimes empty */
    }
    tell();
    while (receive_numbered(fd, 0, &next))
        ;
    say("jumps: %d", jumps);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    stage("jumps");
    send_numbered(fd);
    MUST(shutdown(fd, SHUT_WR));
    say_yes("ended", recv_all(fd, (char[]){0}, 1) == 0);
}

PAIR(server, client)
