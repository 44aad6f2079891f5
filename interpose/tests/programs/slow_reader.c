/*
 * A non-blocking sender against a reader that takes its time: EAGAIN, no writability while nothing is read, then
 * writability, in the end every byte.
 */
#include "program.h"

enum { TOTAL = 24 << 20 };

static size_t sent_total;

/* Sends what fits; the number of EAGAIN met (0 or 1). */
static int send_what_fits(int fd)
{
    static char piece[30000];
    while (sent_total < TOTAL) {
        size_t size = TOTAL - sent_total < sizeof piece ? TOTAL - sent_total : sizeof piece;
        fill(1, sent_total, piece, size);
        long sent = send(fd, piece, size, 0);
        if (sent < 0 && errno == EAGAIN)
            return 1;
        sent_total += MUST(sent);
    }
    return 0;
}

static void server(int fd)
{
    int set = MUST(epoll_create1(0)), refused = 0, writable = 0;
    struct epoll_event event;
    warm(fd, SERVER);
    set_nonblocking(fd);
    epoll_add(set, fd, EPOLLOUT | EPOLLET);
    await_epoll(set, 5000, "at first");
    for (int quiet = 0; quiet < 8;) { /* until nothing more fits, for good */
        size_t before = sent_total;
        refused += send_what_fits(fd);
        quiet = sent_total == before ? quiet + 1 : 0;
        sleep_ms(30);
    }
    say_yes("EAGAIN", refused > 0);
    while (epoll_wait(set, &event, 1, 0) > 0)
        ; /* of the time before it was full */
    await_epoll(set, 100, "full");
    say_poll("full, by poll", fd, POLLOUT, 0);
    say_result("send", send(fd, "x", 1, 0));
    meet(); /* now the peer reads */
    while (sent_total < TOTAL) {
        MUST(epoll_wait(set, &event, 1, -1));
        writable++;
        send_what_fits(fd);
    }
    say_yes("writable again", writable > 0);
    say("sent: %zu", sent_total);
    meet();
}

static void client(int fd)
{
    static char piece[10000];
    size_t total = 0;
    warm(fd, CLIENT);
    meet();
    while (total < TOTAL) {
        size_t size = TOTAL - total < sizeof piece ? TOTAL - total : sizeof piece;
        size_t got = recv_all(fd, piece, size);
        if (got != size || !intact(1, total, piece, got))
            die("recv");
        total += got;
        if (total / sizeof piece % 256 == 0)
            sleep_ms(10);
    }
    say("received: %zu", total);
    meet();
}

PAIR(server, client)
