/* Edge-triggered epoll: one event for each arrival, none for what was seen; MOD shows what is there once more. */
#include "program.h"

static void server(int fd)
{
    char bytes[100];
    warm(fd, SERVER);
    int set = MUST(epoll_create1(0));
    epoll_add(set, fd, EPOLLIN | EPOLLET);
    await_epoll(set, 50, "nothing there");
    meet();
    await_epoll(set, 5000, "10 bytes came");
    await_epoll(set, 50, "unread, not again");
    recv_all(fd, bytes, 4);
    await_epoll(set, 50, "partly read, not again");
    meet();
    await_epoll(set, 5000, "10 more came");
    await_epoll(set, 50, "not again");
    recv_all(fd, bytes, 16);
    await_epoll(set, 50, "all read");

    meet();
    await_bytes(fd, 10);
    epoll_mod(set, fd, EPOLLIN | EPOLLET);
    await_epoll(set, 5000, "after MOD");
    await_epoll(set, 50, "once");
    epoll_mod(set, fd, EPOLLIN | EPOLLET);
    await_epoll(set, 5000, "after MOD again");
    recv_all(fd, bytes, 10);
    epoll_mod(set, fd, EPOLLIN | EPOLLET);
    await_epoll(set, 50, "after MOD, nothing there");

    epoll_mod(set, fd, EPOLLIN | EPOLLOUT | EPOLLET);
    await_epoll(set, 5000, "writable once");
    await_epoll(set, 50, "not again");
    send_all(fd, bytes, 1);
    await_epoll(set, 50, "not for a send");
    meet();
    await_epoll(set, 5000, "10 bytes came, writable too");
    await_epoll(set, 50, "not again");
    recv_all(fd, bytes, 10);
    await_epoll(set, 50, "all read");
    meet();
    await_epoll(set, 5000, "the end came");
    await_epoll(set, 50, "not again");
    say_result("at the end", recv(fd, bytes, 1, 0));
}

static void client(int fd)
{
    char bytes[10] = "";
    warm(fd, CLIENT);
    for (int i = 0; i < 4; i++) {
        meet();
        send_all(fd, bytes, sizeof bytes);
    }
    recv_all(fd, bytes, 1);
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

PAIR(server, client)
