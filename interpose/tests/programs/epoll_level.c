/* Level-triggered epoll: what is ready is shown as often as one asks, with all the names it has. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    int set = MUST(epoll_create1(0));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    await_epoll(set, 50, "nothing there");
    meet();
    await_epoll(set, 5000, "100 bytes there");
    await_bytes(fd, 100);
    await_epoll(set, 5000, "again");
    recv_all(fd, bytes, 50);
    await_epoll(set, -1, "half of it read");
    recv_all(fd, bytes, 50);
    await_epoll(set, 50, "all read");

    epoll_mod(set, fd,
              EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | EPOLLRDHUP);
    await_epoll(set, 5000, "every bit, nothing there");
    meet();
    await_bytes(fd, 100);
    await_epoll(set, 5000, "every bit, 100 bytes there");
    epoll_mod(set, fd, EPOLLOUT);
    await_epoll(set, 5000, "writable only");
    epoll_mod(set, fd, 0);
    await_epoll(set, 50, "no bit");
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
