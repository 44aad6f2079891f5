/*
 * Compiled with -D_FORTIFY_SOURCE=3, so that the compiler itself chooses the checked names; they are called by name
 * as well, so that the case does not depend on the compiler's choice.
 */
#include "program.h"

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);

static volatile size_t unknown = 100; /* a size that the compiler cannot know, so that it must check */

static void server(int fd)
{
    char bytes[128];
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec second = {1, 0};
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 700);
    say_result("poll", poll(&entry, unknown / 100, 1000));
    say_result("ppoll", ppoll(&entry, unknown / 100, &second, NULL));
    say_result("read", read(fd, bytes, unknown));
    say_yes("intact", intact(1, 0, bytes, 100));
    say_result("recv", recv(fd, bytes, unknown, 0));
    say_yes("intact", intact(1, 100, bytes, 100));
    say_result("recvfrom", recvfrom(fd, bytes, unknown, 0, NULL, NULL));
    say_yes("intact", intact(1, 200, bytes, 100));
    say_result("__read_chk", __read_chk(fd, bytes, 100, sizeof bytes));
    say_yes("intact", intact(1, 300, bytes, 100));
    say_result("__recv_chk", __recv_chk(fd, bytes, 100, sizeof bytes, 0));
    say_yes("intact", intact(1, 400, bytes, 100));
    say_result("__recvfrom_chk", __recvfrom_chk(fd, bytes, 100, sizeof bytes, 0, NULL, NULL));
    say_yes("intact", intact(1, 500, bytes, 100));
    entry.revents = 0;
    int count = __poll_chk(&entry, 1, 0, sizeof entry);
    say_events("__poll_chk", count, entry.revents);
    entry.revents = 0;
    count = __ppoll_chk(&entry, 1, &second, NULL, sizeof entry);
    say_events("__ppoll_chk", count, entry.revents);
    say_result("__pread_chk", __pread_chk(fd, bytes, 100, 0, sizeof bytes));
    say_result("recv, peek", __recv_chk(fd, bytes, 128, sizeof bytes, MSG_PEEK));
    say_result("recv", __recv_chk(fd, bytes, 128, sizeof bytes, MSG_DONTWAIT));
    say_yes("intact", intact(1, 600, bytes, 100));
    say_result("recv, nothing there", __recv_chk(fd, bytes, 128, sizeof bytes, MSG_DONTWAIT));
    meet();
}

static void client(int fd)
{
    char bytes[700];
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    send_all(fd, bytes, sizeof bytes);
    meet();
    meet();
}

PAIR(server, client)
