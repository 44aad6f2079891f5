/* A handler leaves a blocked recv, poll and send by siglongjmp; the stream is in order afterwards. */
#include "pester.h"
#include <setjmp.h>

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

#define JUMP_OUT_OF(what, call)                                                                                        \
    do {                                                                                                               \
        stage(what);                                                                                                   \
        pester_start(SIGUSR1, UNTIL_INTERRUPTED, NULL);                                                                \
        if (!sigsetjmp(back, 1)) {                                                                                     \
            armed = 1;                                                                                                 \
            call;                                                                                                      \
            say(what " returned");                                                                                     \
        } else {                                                                                                       \
            say(what " left by a jump");                                                                               \
        }                                                                                                              \
        armed = 0;                                                                                                     \
        pester_stop();                                                                                                 \
    } while (0)

static void server(int fd)
{
    static char bytes[65536];
    int set = MUST(epoll_create1(0));
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct sigaction action = {.sa_handler = jump};
    MUST(sigaction(SIGUSR1, &action, NULL));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    for (int round = 0; round < 5; round++) {
        JUMP_OUT_OF("recv", recv(fd, bytes, 1, 0));
        JUMP_OUT_OF("poll", poll(&entry, 1, -1));
        JUMP_OUT_OF("epoll_wait", epoll_wait(set, &event, 1, -1));
        meet();
        warm(fd, SERVER);
    }
    fill_up(fd);
    JUMP_OUT_OF("send", send(fd, bytes, sizeof bytes, 0));
    tell();
    shutdown(fd, SHUT_WR);
    say_result("at the end", recv(fd, bytes, 1, 0));
}

static void client(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    warm(fd, CLIENT);
    for (int round = 0; round < 5; round++) {
        meet();
        warm(fd, CLIENT);
    }
    hear();
    for (size_t got; (got = recv_all(fd, bytes, sizeof bytes)); total += got)
        ;
    say_yes("received", total > 0);
}

PAIR(server, client)
