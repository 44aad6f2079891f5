/* EPOLLRDHUP and EPOLLHUP: half-closed by the peer, then by ourselves; with bytes still unread, and without asking. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    int set = MUST(epoll_create1(0)), other = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
    warm(fd, SERVER);
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    event.events = 0;
    MUST(epoll_ctl(other, EPOLL_CTL_ADD, fd, &event));
    await_epoll(set, &event, 0, "nothing");
    meet();
    await_poll(fd, POLLIN | POLLRDHUP); /* the peer has sent 100 bytes and shut down */
    await_epoll(set, &event, 5000, "bytes and the end");
    await_epoll(other, &event, 20, "no bit asked for");
    await_bytes(fd, 100);
    recv_all(fd, bytes, 100);
    await_epoll(set, &event, 5000, "bytes read");
    say_result("at the end", recv(fd, bytes, 1, 0));
    await_epoll(set, &event, 5000, "end read");
    event.events = EPOLLOUT | EPOLLET;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    await_epoll(set, &event, 5000, "writable, once");
    await_epoll(set, &event, 20, "not again");
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLHUP;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    meet();
    send_all(fd, bytes, 100);
    MUST(shutdown(fd, SHUT_WR));
    await_poll(fd, POLLHUP);
    await_epoll(set, &event, 5000, "both ways closed");
    await_epoll(other, &event, 5000, "no bit asked for");
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
