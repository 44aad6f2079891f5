/* One thread that waits on one stream by turns: in epoll, in recv, in poll. No wait spoils the next one. */
#include "program.h"

enum { ROUNDS = 60 };

static void server(int fd)
{
    unsigned modes[] = {EPOLLIN, EPOLLIN | EPOLLET};
    char byte;
    warm(fd, SERVER);
    for (int i = 0; i < 2; i++) {
        int set = MUST(epoll_create1(0));
        struct epoll_event event;
        epoll_add(set, fd, modes[i]);
        for (int round = 0; round < ROUNDS; round++) {
            stage(i ? "edge" : "level");
            struct pollfd entry = {.fd = fd, .events = POLLIN};
            int way = round % 3;
            if (way == 0 && MUST(epoll_wait(set, &event, 1, 5000)) != 1)
                die("epoll_wait");
            if (way == 1 && MUST(poll(&entry, 1, 5000)) != 1)
                die("poll");
            if (recv(fd, &byte, 1, way == 2 ? 0 : MSG_DONTWAIT) != 1)
                die("recv");
            /* Nothing is there, and a wait says so. */
            if (way != 0 && i == 0 && epoll_wait(set, &event, 1, round % 2 ? 2 : 0))
                die("epoll_wait, nothing there");
            send_all(fd, &byte, 1);
        }
        say("%s: done", stage_now);
        close(set);
    }
    meet();
}

static void client(int fd)
{
    char byte = 'x';
    warm(fd, CLIENT);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        sleep_ms(3); /* the other end is asleep */
        send_all(fd, &byte, 1);
        recv_all(fd, &byte, 1);
    }
    meet();
}

PAIR(server, client)
