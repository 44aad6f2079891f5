/* SHUT_WR: the peer drains, answers and closes; what poll, send and recv show at each step. */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP | POLLPRI };

static void client(int fd)
{
    char byte;
    warm(fd, CLIENT);
    send_pattern(fd, 1, 30000);
    MUST(shutdown(fd, SHUT_WR));
    say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
    say_result("send nothing", send(fd, "", 0, MSG_NOSIGNAL));
    say_result("shutdown again", shutdown(fd, SHUT_WR));
    say_poll("shut down", fd, EVERY, 0);
    say_result("recv, nothing there", recv(fd, &byte, 1, MSG_DONTWAIT));
    meet();
    say("answer: %zu", recv_pattern(fd, 2, 1 << 20));
    await_poll(fd, POLLHUP);
    say_poll("both closed", fd, EVERY, 0);
    say_result("recv", recv(fd, &byte, 1, 0));
    say_result("shutdown", shutdown(fd, SHUT_RD));
    meet();
}

static void server(int fd)
{
    char byte;
    warm(fd, SERVER);
    await_poll(fd, POLLRDHUP);
    say_poll("closed by the peer", fd, EVERY, 0);
    meet();
    say("question: %zu", recv_pattern(fd, 1, 1 << 20));
    say_poll("drained", fd, EVERY, 0);
    say_result("recv", recv(fd, &byte, 1, 0));
    say_result("recv, peek", recv(fd, &byte, 1, MSG_PEEK));
    send_pattern(fd, 2, 300000);
    MUST(shutdown(fd, SHUT_RDWR));
    say_poll("both closed", fd, EVERY, 0);
    say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
    meet();
}

PAIR(server, client)
