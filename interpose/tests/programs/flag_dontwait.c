/* MSG_DONTWAIT and O_NONBLOCK: EAGAIN where there is nothing and where there is no room, never a wait. */
#include "program.h"

static void server(int fd)
{
    static char bytes[65536];
    int refused = 0;
    size_t total = 0, sent;
    warm(fd, SERVER);
    long start = now_ms();
    for (int i = 0; i < 2000; i++)
        refused += recv(fd, bytes, 10, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    set_nonblocking(fd);
    for (int i = 0; i < 2000; i++)
        refused += read(fd, bytes, 10) < 0 && errno == EAGAIN;
    say("refused: %d", refused);
    say_time("in no time", start, 0);
    set_blocking(fd);
    meet();
    hear(); /* the peer has sent until it was refused */
    MUST(recv(turns, &sent, sizeof sent, MSG_WAITALL));
    for (long got; total < sent && (got = MUST(recv(fd, bytes, sizeof bytes, 0))); total += got)
        ;
    say_yes("all that was accepted", total == sent);
    say_result("no more", recv(fd, bytes, 1, MSG_DONTWAIT));
    meet();
    warm(fd, SERVER);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    size_t sent = fill_up(fd);
    long start = now_ms();
    say_result("send", send(fd, "x", 1, MSG_DONTWAIT));
    set_nonblocking(fd);
    say_result("write", write(fd, "x", 1));
    say_time("in no time", start, 0);
    set_blocking(fd);
    tell();
    MUST(send(turns, &sent, sizeof sent, 0));
    meet();
    warm(fd, CLIENT);
}

PAIR(server, client)
