/* Connections that are refused, blocking and not; the same socket connects to somebody else afterwards. */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP };

/* A port where nobody listens, and nobody else will: it is bound. */
static struct sockaddr_in refusing(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address));
    MUST(getsockname(fd, (struct sockaddr *)&address, &length));
    return address;
}

static void client(int port)
{
    struct sockaddr_in nobody = refusing(), somebody = loopback(port);
    char byte;
    int error = -1;
    socklen_t length = sizeof error;
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
    for (int i = 0; i < 3; i++)
        say_result("blocking", connect(fd, (struct sockaddr *)&nobody, sizeof nobody));
    say_result("recv", recv(fd, &byte, 1, 0));
    say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
    set_nonblocking(fd);
    say_result("non-blocking", connect(fd, (struct sockaddr *)&nobody, sizeof nobody));
    await_poll(fd, POLLOUT | POLLERR | POLLHUP);
    say_poll("poll", fd, EVERY, 0);
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("SO_ERROR: %s", strerrorname_np(error));
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("SO_ERROR again: %s", strerrorname_np(error));
    set_blocking(fd);
    say_result("somebody, after a refusal unasked for", connect(fd, (struct sockaddr *)&somebody, sizeof somebody));
    if (errno == ECONNABORTED) /* the first attempt only fetches the old failure */
        say_result("somebody", connect(fd, (struct sockaddr *)&somebody, sizeof somebody));
    warm(fd, CLIENT);
    /* Disconnected, and connected once more. */
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    say_result("disconnected", connect(fd, &none, sizeof none));
    say_result("recv", recv(fd, &byte, 1, 0));
    say_result("connected again", connect(fd, (struct sockaddr *)&somebody, sizeof somebody));
    warm(fd, CLIENT);
    meet();
}

static void server(int listener)
{
    char byte;
    int fd = accept_warm(listener);
    say_result("disconnected by the peer", recv(fd, &byte, 1, 0));
    close(fd);
    fd = accept_warm(listener);
    meet();
}

ROLES(server, client)
