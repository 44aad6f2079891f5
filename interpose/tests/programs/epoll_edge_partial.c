/*
 * Edge-triggered readers that take a little at each event: the bytes left behind show up with the next arrival, and
 * nothing is lost when arrivals and reads overlap.
 */
#include "program.h"

enum { MESSAGES = 4000, SIZE = 24 };

static void server(int fd)
{
    char bytes[SIZE];
    size_t total = 0;
    uint64_t sum = 0;
    int set = MUST(epoll_create1(0));
    warm(fd, SERVER);
    set_nonblocking(fd);
    struct epoll_event event;
    epoll_add(set, fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
    meet();
    for (int ended = 0; !ended;) {
        long got;
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.events & EPOLLRDHUP)
            break; /* the rest is read below */
        /* Once in eight events read on until nothing is left, else take one message at most. */
        do {
            got = recv(fd, bytes, sizeof bytes, 0);
            if (got > 0) {
                sum_bytes(&sum, bytes, got);
                total += got;
            }
            ended = got == 0;
        } while (got > 0 && total / SIZE % 8 == 0);
    }
    for (long got; (got = recv(fd, bytes, sizeof bytes, 0)) > 0; total += got)
        sum_bytes(&sum, bytes, got);
    say("%zu bytes, sum %016llx", total, (unsigned long long)sum);
}

static void client(int fd)
{
    char bytes[SIZE];
    warm(fd, CLIENT);
    meet();
    for (int i = 0; i < MESSAGES; i++) {
        fill(1, (uint64_t)i * SIZE, bytes, SIZE);
        send_all(fd, bytes, SIZE);
        if (i % 100 == 0)
            sleep_ms(2);
    }
    close(fd);
}

PAIR(server, client)
