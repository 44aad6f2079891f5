/* One thread, one epoll set, both ends of several streams in it. */
#include "program.h"

enum { STREAMS = 8, ROUNDS = 400 };

static void self(void)
{
    int port, listener = listen_any(&port), set = MUST(epoll_create1(0));
    int rounds[STREAMS] = {0}, ended = 0;
    int clients[STREAMS];
    char byte;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 1000};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
    for (int i = 0; i < STREAMS; i++) {
        clients[i] = connect_to(port);
        event = (struct epoll_event){.events = EPOLLIN | (i % 2 ? EPOLLET : 0), .data.u64 = i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, clients[i], &event));
        send_all(clients[i], "x", 1);
    }
    while (ended < STREAMS) {
        struct epoll_event events[4];
        int count = MUST(epoll_wait(set, events, 4, -1));
        for (int i = 0; i < count; i++) {
            uint64_t data = events[i].data.u64;
            if (data == 1000) {
                int fd = accept_one(listener);
                event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 2000 + fd};
                MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
            } else if (data >= 2000) { /* a server's end: the echo */
                int fd = data - 2000;
                if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
                    send_all(fd, &byte, 1);
                } else {
                    close(fd);
                    ended++;
                }
            } else if (recv(clients[data], &byte, 1, MSG_DONTWAIT) == 1) {
                if (++rounds[data] < ROUNDS)
                    send_all(clients[data], "x", 1);
                else
                    close(clients[data]);
            }
        }
    }
    for (int i = 0; i < STREAMS; i++)
        say("stream %d: %d rounds", i, rounds[i]);
}

SELF(self)
