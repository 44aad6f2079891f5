/* Edge-triggered epoll: one event for each arrival, none for what was seen; MOD shows what is there once more. */
#include "program.h"

static int set;

static void expect(const char *what, int ms)
{
    struct epoll_event event;
    await_epoll(set, &event, ms, what);
}

static void server(int fd)
{
    char bytes[100];
    warm(fd, SERVER);
    set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    expect("nothing there", 50);
    meet();
    expect("10 bytes came", 5000);
    expect("unread, not again", 50);
    recv_all(fd, bytes, 4);
    expect("partly read, not again", 50);
    meet();
    expect("10 more came", 5000);
    expect("not again", 50);
    recv_all(fd, bytes, 16);
    expect("all read", 50);

    meet();
    await_bytes(fd, 10);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    expect("after MOD", 5000);
    expect("once", 50);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    expect("after MOD again", 5000);
    recv_all(fd, bytes, 10);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    expect("after MOD, nothing there", 50);

    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    expect("writable once", 5000);
    expect("not again", 50);
    send_all(fd, bytes, 1);
    expect("not for a send", 50);
    meet();
    expect("10 bytes came, writable too", 5000);
    expect("not again", 50);
    recv_all(fd, bytes, 10);
    expect("all read", 50);
    meet();
    expect("the end came", 5000);
    expect("not again", 50);
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
