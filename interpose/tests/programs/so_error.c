/* SO_ERROR: 0 on a living stream, ECONNRESET once after a reset, and then a recv that says the end. */
#include "program.h"

static const char *error_of(int fd)
{
    int error = -1;
    socklen_t length = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    return strerrorname_np(error);
}

static void server(int listener)
{
    char bytes[10] = "";
    for (int i = 0; i < 2; i++) {
        int fd = accept_warm(listener);
        say("alive: %s", error_of(fd));
        send_all(fd, bytes, 10);
        meet();
        await_poll(fd, POLLHUP | POLLERR);
        if (i == 0) {
            say("reset: %s", error_of(fd));
            say("asked again: %s", error_of(fd));
            say_poll("poll", fd, POLLIN | POLLOUT, 0);
            say_result("recv", recv(fd, bytes, 10, 0));
        } else {
            say_result("recv", recv(fd, bytes, 10, 0));
            say("after recv: %s", error_of(fd));
        }
        say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));
        say("after send: %s", error_of(fd));
        close(fd);
    }
}

static void client(int port)
{
    for (int i = 0; i < 2; i++) {
        int fd = connect_warm(port);
        await_bytes(fd, 10);
        meet();
        close(fd); /* with bytes unread: a reset */
    }
}

ROLES(server, client)
