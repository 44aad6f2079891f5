/*
 * ppoll, pselect and epoll_pwait with a signal mask: a pending signal that the mask lets in ends the wait; where an
 * event is there already, the event is reported and the signal stays pending.
 */
#include "pester.h"

static sigset_t none, blocked;

static void pending(const char *what)
{
    sigset_t waiting;
    sigpending(&waiting);
    say("  %s: handled %d, still pending %d", what, (int)handled, sigismember(&waiting, SIGUSR1));
    if (sigismember(&waiting, SIGUSR1)) { /* take it */
        struct timespec now = {0, 0};
        MUST(sigtimedwait(&blocked, NULL, &now));
    }
    handled = 0;
}

static void all_forms(int fd, int set, const char *title)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec limit = {10, 0};
    struct epoll_event event;
    fd_set readable;
    say("-- %s", title);
    raise(SIGUSR1);
    say_result("ppoll", ppoll(&entry, 1, &limit, &none));
    pending("ppoll");
    raise(SIGUSR1);
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    say_result("pselect", pselect(fd + 1, &readable, NULL, NULL, &limit, &none));
    pending("pselect");
    raise(SIGUSR1);
    say_result("epoll_pwait", epoll_pwait(set, &event, 1, 10000, &none));
    pending("epoll_pwait");
    raise(SIGUSR1);
    say_result("epoll_pwait2", epoll_pwait2(set, &event, 1, &limit, &none));
    pending("epoll_pwait2");
}

static void server(int fd)
{
    char byte;
    int set = MUST(epoll_create1(0));
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec soon = {0, 50000000};
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    handle(SIGUSR1, 0);
    MUST(-pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    all_forms(fd, set, "nothing there");

    /* A mask that keeps it out: the wait runs to its limit. */
    raise(SIGUSR1);
    say_result("ppoll, blocked", ppoll(&entry, 1, &soon, &blocked));
    say_result("ppoll, no mask", ppoll(&entry, 1, &soon, NULL));
    say_result("epoll_pwait, no mask", epoll_pwait(set, &event, 1, 50, NULL));
    pending("blocked");

    meet();
    await_bytes(fd, 1);
    all_forms(fd, set, "a byte there");
    recv_all(fd, &byte, 1);
    meet();
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    send_all(fd, "x", 1);
    meet();
}

PAIR(server, client)
