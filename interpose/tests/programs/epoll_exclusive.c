/* EPOLLEXCLUSIVE: several sets hold one stream, at least one of them is woken, and MOD is refused. */
#include "program.h"

enum { SETS = 4, MESSAGES = 200 };

static int sets[SETS], stream, taken, finished;

static void *serve(void *argument)
{
    int set = *(int *)argument;
    char byte;
    while (!__atomic_load_n(&finished, __ATOMIC_ACQUIRE)) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, 100) != 1)
            continue;
        long got = recv(stream, &byte, 1, MSG_DONTWAIT);
        if (got == 1 && __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED) == MESSAGES)
            __atomic_store_n(&finished, 1, __ATOMIC_RELEASE);
        if (got == 1)
            send_all(stream, &byte, 1);
    }
    return NULL;
}

static void server(int fd)
{
    pthread_t threads[SETS];
    stream = fd;
    ping_pong(fd, SERVER, 100);
    for (int i = 0; i < SETS; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = fd};
        sets[i] = MUST(epoll_create1(0));
        MUST(epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &event));
        if (i == 0) {
            say_result("MOD", epoll_ctl(sets[i], EPOLL_CTL_MOD, fd, &event));
            event.events = EPOLLIN;
            say_result("MOD without EXCLUSIVE", epoll_ctl(sets[i], EPOLL_CTL_MOD, fd, &event));
            MUST(epoll_ctl(sets[i], EPOLL_CTL_DEL, fd, NULL));
            event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
            say_result("ADD with ONESHOT", epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &event));
            event.events = EPOLLIN | EPOLLEXCLUSIVE;
            MUST(epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &event));
        }
        MUST(-pthread_create(&threads[i], NULL, serve, &sets[i]));
    }
    for (int i = 0; i < SETS; i++)
        pthread_join(threads[i], NULL);
    say("taken: %d", taken);
    meet();
    warm(fd, SERVER);
    meet();
}

static void client(int fd)
{
    char byte = 'x';
    ping_pong(fd, CLIENT, 100);
    for (int i = 0; i < MESSAGES; i++) {
        send_all(fd, &byte, 1);
        recv_all(fd, &byte, 1);
    }
    meet(); /* no thread is left that would take from what follows */
    warm(fd, CLIENT);
    say("answered");
    meet();
}

PAIR(server, client)
