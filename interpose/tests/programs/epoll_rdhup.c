/* EPOLLRDHUP and EPOLLHUP: half-closed by the peer, then by ourselves; with bytes still unread, and without asking. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    int set = MUST(epoll_create1(0)), other = MUST(epoll_create1(0));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN | EPOLLRDHUP);
    epoll_add(other, fd, 0);
    await_epoll(set, 0, "nothing");
    meet();
    await_poll(fd, POLLIN | POLLRDHUP); /* the peer has sent 100 bytes and shut down */
    await_epoll(set, 5000, "bytes and the end");
    await_epoll(other, 20, "no bit asked for");
    await_bytes(fd, 100);
    recv_all(fd, bytes, 100);
    await_epoll(set, 5000, "bytes read");
    say_result("at the end", recv(fd, bytes, 1, 0));
    await_epoll(set, 5000, "end read");
    epoll_mod(set, fd, EPOLLOUT | EPOLLET);
    await_epoll(set, 5000, "writable, once");
    await_epoll(set, 20, "not again");
    epoll_mod(set, fd, EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLHUP);
    meet();
    send_all(fd, bytes, 100);
    MUST(shutdown(fd, SHUT_WR));
    await_poll(fd, POLLHUP);
    await_epoll(set, 5000, "both ways closed");
    await_epoll(other, 5000, "no bit asked for");
    meet();
}

static void client(int fd)
{
    char bytes[100] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, sizeof bytes);
    MUST(shutdown(fd, SHUT_WR));
    say_poll("shut down", fd, POLLOUT | POLLHUP, 0);
    meet();
    say("%zu bytes came back", recv_all(fd, bytes, 100));
    say_result("at the end", recv(fd, bytes, 1, 0));
    meet();
}

PAIR(server, client)
