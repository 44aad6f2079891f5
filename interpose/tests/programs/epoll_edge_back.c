/*
 * Edge-triggered epoll while the sender goes back to TCP (fdopen makes it): what comes by TCP is an edge, though bytes
 * that came before are still unread on the wire.
 */
#include "program.h"

static int set;

static void expect(const char *what, int ms)
{
    struct epoll_event event;
    await_epoll(set, &event, ms, what);
}

static void server(int fd)
{
    char bytes[30];
    warm(fd, SERVER);
    set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    expect("nothing there", 50);
    meet();
    expect("10 bytes came", 5000);
    for (int i = 0; i < 2; i++) {
        meet();
        expect("10 more came", 5000);
    }
    recv_all(fd, bytes, sizeof bytes);
    expect("all read", 50);
    meet();
    say_result("at the end", recv(fd, bytes, 1, 0));
}

static void client(int fd)
{
    char bytes[10] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, sizeof bytes);
    for (int i = 0; i < 2; i++) {
        meet();
        if (i == 0 && !fdopen(fd, "r+"))
            die("fdopen");
        send_all(fd, bytes, sizeof bytes);
    }
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

PAIR(server, client)
