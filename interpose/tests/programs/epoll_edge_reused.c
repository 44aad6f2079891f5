/* Edge-triggered connections that follow each other on one descriptor number of one epoll set, each shorter than the
 * one before: nothing of the earlier one may be taken for news of the next, or hide them. */
#include "program.h"

enum { CONNECTIONS = 6, LONGEST = 1000 };

static int rounds_of(int connection) { return connection ? 100 - connection : LONGEST; }

/* Echoes until the end; true if all that came was reported. In `slow` connections it waits only when the next message
 * is there already. */
static int serve(int epoll, int fd, int slow)
{
    struct epoll_event event;
    set_nonblocking(fd);
    epoll_add(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    for (;;) {
        char bytes[200];
        ssize_t n;
        if (MUST(epoll_wait(epoll, &event, 1, 5000)) == 0)
            return 0;
        while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
            send_all(fd, bytes, n);
        if (n == 0)
            return 1;
        if (slow)
            sleep_ms(2);
    }
}

static void server(int listener)
{
    int epoll = MUST(epoll_create1(0)), number = -1, same = 1;
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = accept_one(listener);
        same &= number < 0 || fd == number;
        number = fd;
        say("served to its end: %d", serve(epoll, fd, i > 0));
        close(fd);
        meet();
    }
    say("always the same number: %d", same);
}

static void client(int port)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = connect_to(port);
        ping_pong(fd, CLIENT, rounds_of(i));
        close(fd);
        meet();
    }
    say("all served");
}

ROLES(server, client)
