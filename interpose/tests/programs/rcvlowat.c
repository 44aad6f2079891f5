/* SO_RCVLOWAT: fewer bytes than that are not readable, for poll and for a blocked recv; without blocking they are. */
#include "program.h"

static void server(int fd)
{
    char bytes[200];
    int mark = 100, one = 1, seen = 0;
    socklen_t length = sizeof seen;
    int set = MUST(epoll_create1(0));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    MUST(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &seen, &length));
    say("SO_RCVLOWAT: %d", seen);
    meet();
    await_bytes(fd, 50);
    say_poll("50 there", fd, POLLIN, 50);
    await_epoll(set, 50, "50 there, epoll");
    meet();
    await_bytes(fd, 100);
    say_poll("100 there", fd, POLLIN, 5000);
    await_epoll(set, 5000, "100 there, epoll");
    say_result("recv", recv(fd, bytes, 60, 0));
    say_poll("40 left", fd, POLLIN, 50);
    say_result("without blocking", recv(fd, bytes, 200, MSG_DONTWAIT));
    meet();
    /* The peer sends 20 at a time; recv waits for 100. */
    say_result("recv", recv(fd, bytes, 100, 0));
    meet();
    await_bytes(fd, 50);
    say_result("recv of fewer", recv(fd, bytes, 30, 0));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one));
    say_poll("mark lowered", fd, POLLIN, 5000);
    say_result("recv", recv(fd, bytes, 200, 0));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    meet();
    say_result("until the end", recv(fd, bytes, 200, 0));
    say_poll("at the end", fd, POLLIN, 5000);
    meet();
}

static void client(int fd)
{
    char bytes[50] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, 50);
    meet();
    send_all(fd, bytes, 50);
    meet();
    for (int i = 0; i < 5; i++) {
        sleep_ms(10);
        send_all(fd, bytes, 20);
    }
    meet();
    send_all(fd, bytes, 50);
    meet();
    send_all(fd, bytes, 30);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

PAIR(server, client)
