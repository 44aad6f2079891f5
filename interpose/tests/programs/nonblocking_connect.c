/* Non-blocking connect: EINPROGRESS, writability, SO_ERROR, and what connect says when it is asked again. */
#include "program.h"

static void client(int port)
{
    struct sockaddr_in address = loopback(port);
    struct sockaddr *to = (struct sockaddr *)&address;
    char byte;
    int error = -1;
    socklen_t length = sizeof error;
    signal(SIGPIPE, SIG_IGN);
    int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    say_poll("not connected", fd, POLLIN | POLLOUT, 0);
    say_result("recv, not connected", recv(fd, &byte, 1, 0));
    say_result("send, not connected", send(fd, "x", 1, 0));
    say_result("connect", connect(fd, to, sizeof address));
    await_poll(fd, POLLOUT);
    say_poll("connected", fd, POLLIN | POLLOUT, 0);
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("SO_ERROR: %d", error);
    say_result("connect again", connect(fd, to, sizeof address));
    say_result("and again", connect(fd, to, sizeof address));
    say_result("recv, nothing there", recv(fd, &byte, 1, 0));
    set_blocking(fd);
    warm(fd, CLIENT);
    say_result("connect, warm", connect(fd, to, sizeof address));
    meet();
}

static void server(int listener)
{
    set_nonblocking(listener);
    await_poll(listener, POLLIN);
    int fd = MUST(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
    say_yes("non-blocking", fcntl(fd, F_GETFL) & O_NONBLOCK);
    say_result("accept, nobody there", accept(listener, NULL, NULL));
    set_blocking(fd);
    warm(fd, SERVER);
    meet();
}

ROLES(server, client)
