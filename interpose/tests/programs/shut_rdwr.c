/* SHUT_RDWR: what both ends see; and what happens to bytes that the peer sends afterwards. */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP };

static int so_error(int fd)
{
    int error = -1;
    socklen_t length = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    return error;
}

static void server(int fd)
{
    char bytes[20];
    signal(SIGPIPE, SIG_IGN);
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 10);
    say_result("shutdown", shutdown(fd, SHUT_RDWR));
    say_poll("shut down", fd, EVERY, 0);
    say_result("recv, 10 bytes there", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("send", send(fd, bytes, 1, 0));
    meet();
    meet();
    /* The peer has sent one byte more. */
    say_poll("afterwards", fd, EVERY, 0);
    say("SO_ERROR: %s", strerrorname_np(so_error(fd)));
    say_result("shutdown again", shutdown(fd, SHUT_RDWR));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    meet();
}

static void client(int fd)
{
    char bytes[20] = "";
    signal(SIGPIPE, SIG_IGN);
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, 10);
    meet();
    await_poll(fd, POLLRDHUP);
    say_poll("closed by the peer", fd, EVERY, 0);
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("send", send(fd, bytes, 1, 0));
    await_poll(fd, POLLHUP);
    say_poll("reset", fd, EVERY, 0);
    say_result("send", send(fd, bytes, 1, 0));
    say_result("send", send(fd, bytes, 1, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    meet();
    meet();
}

PAIR(server, client)
