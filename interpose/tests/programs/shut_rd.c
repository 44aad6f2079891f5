/*
 * SHUT_RD: on Linux bytes that are there, and bytes that come later, can still be read; where there are none recv
 * says 0 at once. The peer notices nothing.
 */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP };

static void server(int fd)
{
    char bytes[20];
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 10);
    say_result("shutdown", shutdown(fd, SHUT_RD));
    say_poll("10 bytes there", fd, EVERY, 0);
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv, waiting for all", recv(fd, bytes, sizeof bytes, MSG_WAITALL));
    say_poll("nothing there", fd, EVERY, 0);
    meet();
    await_bytes(fd, 7);
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    send_all(fd, bytes, 10);
    meet();
    sleep_ms(50);
    say_poll("closed by the peer", fd, EVERY, 0);
    MUST(shutdown(fd, SHUT_WR));
    await_poll(fd, POLLHUP);
    meet();
}

static void client(int fd)
{
    char bytes[20] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, 10);
    meet();
    say_poll("nothing noticed", fd, EVERY, 0);
    send_all(fd, bytes, 7);
    say("came back: %zu", recv_all(fd, bytes, 10));
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
    meet();
}

PAIR(server, client)
