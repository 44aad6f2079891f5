/*
 * Edge-triggered epoll while the sender goes back to TCP (fdopen makes it): what comes by TCP is an edge, though bytes
 * that came before are still unread on the wire.
 */
#include "program.h"

static void server(int fd)
{
    char bytes[30];
    warm(fd, SERVER);
    int set = MUST(epoll_create1(0));
    epoll_add(set, fd, EPOLLIN | EPOLLET);
    await_epoll(set, 50, "nothing there");
    meet();
    await_epoll(set, 5000, "10 bytes came");
    for (int i = 0; i < 2; i++) {
        meet();
        await_epoll(set, 5000, "10 more came");
    }
    recv_all(fd, bytes, sizeof bytes);
    await_epoll(set, 50, "all read");
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
