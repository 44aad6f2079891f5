/* An epoll set inside another one, in poll and in select, and three deep. */
#include "program.h"

static int inner, middle, outer;

static void look(const char *what, int ms)
{
    fd_set readable;
    struct timeval wait = {ms / 1000, ms % 1000 * 1000};
    say("-- %s", what);
    await_epoll(outer, ms, "outer");
    say_poll("poll of the inner", inner, POLLIN | POLLOUT, ms);
    say_poll("poll of the outer", outer, POLLIN, ms);
    FD_ZERO(&readable);
    FD_SET(middle, &readable);
    say_result("select of the middle", select(middle + 1, &readable, NULL, NULL, &wait));
    await_epoll(inner, ms, "inner");
}

static void server(int fd)
{
    char bytes[20];
    inner = MUST(epoll_create1(0));
    middle = MUST(epoll_create1(0));
    outer = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
    MUST(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event)); /* before the stream moves */
    warm(fd, SERVER);
    MUST(epoll_ctl(middle, EPOLL_CTL_ADD, inner, &event));
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, middle, &event));
    say_result("a loop", epoll_ctl(inner, EPOLL_CTL_ADD, outer, &event));
    look("nothing there", 30);
    meet();
    await_bytes(fd, 20);
    look("20 bytes there", 5000);
    recv_all(fd, bytes, 10);
    look("half of it read", 5000);
    recv_all(fd, bytes, 10);
    look("all read", 30);

    meet();
    /* A thread asleep in the outer set is woken by bytes for the innermost. */
    for (int round = 0; round < 200; round++) {
        MUST(epoll_wait(outer, &event, 1, -1));
        MUST(epoll_wait(inner, &event, 1, -1));
        recv_all(fd, bytes, 1);
        send_all(fd, bytes, 1);
    }
    say("woken through three sets");
    meet();
    look("the end came", 5000);
}

static void client(int fd)
{
    char bytes[20] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, sizeof bytes);
    meet(); /* all of it was read */
    for (int round = 0; round < 200; round++) {
        if (round % 20 == 0)
            sleep_ms(5);
        send_all(fd, bytes, 1);
        recv_all(fd, bytes, 1);
    }
    meet();
    shutdown(fd, SHUT_WR);
    recv_all(fd, bytes, 1);
}

PAIR(server, client)
