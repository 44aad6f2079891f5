/* Level-triggered epoll: what is ready is shown as often as one asks, with all the names it has. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    int set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    warm(fd, SERVER);
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    await_epoll(set, &event, 50, "nothing there");
    meet();
    await_epoll(set, &event, 5000, "100 bytes there");
    await_bytes(fd, 100);
    await_epoll(set, &event, 5000, "again");
    recv_all(fd, bytes, 50);
    await_epoll(set, &event, -1, "half of it read");
    recv_all(fd, bytes, 50);
    await_epoll(set, &event, 50, "all read");

    event.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | EPOLLRDHUP;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    await_epoll(set, &event, 5000, "every bit, nothing there");
    meet();
    await_bytes(fd, 100);
    await_epoll(set, &event, 5000, "every bit, 100 bytes there");
    event.events = EPOLLOUT;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    await_epoll(set, &event, 5000, "writable only");
    event.events = 0;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    await_epoll(set, &event, 50, "no bit");
    recv_all(fd, bytes, 100);
    meet();
}

static void client(int fd)
{
    char bytes[100] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, sizeof bytes);
    meet();
    send_all(fd, bytes, sizeof bytes);
    meet();
}

PAIR(server, client)
