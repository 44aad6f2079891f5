/* The names with two underscores that libc exports for its own kin. */
#include "program.h"

ssize_t __read(int, void *, size_t);
ssize_t __write(int, const void *, size_t);
ssize_t __send(int, const void *, size_t, int);
int __connect(int, const struct sockaddr *, socklen_t);
int __poll(struct pollfd *, nfds_t, int);
int __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);
int __fcntl(int, int, ...);
int __dup2(int, int);
int __close(int);

static void server(int listener)
{
    char bytes[100];
    fd_set readable;
    struct timeval second = {1, 0};
    int fd = accept_warm(listener);
    meet();
    await_bytes(fd, 200);
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT};
    int count = __poll(&entry, 1, 0);
    say_events("__poll", count, entry.revents);
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    say_result("__select", __select(fd + 1, &readable, NULL, NULL, &second));
    say_result("__read", __read(fd, bytes, 100));
    say_yes("intact", intact(1, 0, bytes, 100));
    int other = MUST(open("/dev/null", O_RDONLY));
    say_yes("__dup2", __dup2(fd, other) == other);
    say_result("__close", __close(fd));
    say_result("__read", __read(other, bytes, 100));
    say_yes("intact", intact(1, 100, bytes, 100));
    say_result("__fcntl", __fcntl(other, F_SETFL, O_NONBLOCK));
    say_result("__read, nothing there", __read(other, bytes, 100));
    say_result("__write", __write(other, bytes, 100));
    meet();
    say_result("__close", __close(other));
    say_result("__read, closed", __read(other, bytes, 100));
    meet();
}

static void client(int port)
{
    char bytes[100];
    struct sockaddr_in address = loopback(port);
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
    say_result("__connect", __connect(fd, (struct sockaddr *)&address, sizeof address));
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    say_result("__send", __send(fd, bytes, sizeof bytes, 0));
    fill(1, 100, bytes, sizeof bytes);
    say_result("__write", __write(fd, bytes, sizeof bytes));
    meet();
    meet();
    recv_all(fd, bytes, sizeof bytes);
    say_yes("intact", intact(1, 100, bytes, 100));
    meet();
    say_result("at the end", __read(fd, bytes, 100));
}

ROLES(server, client)
