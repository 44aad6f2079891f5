/* shutdown by one thread wakes others that are blocked in recv, send, poll, select, epoll_wait and accept. */
#include "program.h"

static int stream, how;

static void *shut_down_soon(void *unused)
{
    (void)unused;
    sleep_ms(80);
    MUST(shutdown(stream, how));
    return NULL;
}

#define SHUT_DOWN_DURING(how_, fd_, statement)                                                                         \
    do {                                                                                                               \
        pthread_t thread;                                                                                              \
        stream = fd_;                                                                                                  \
        how = how_;                                                                                                    \
        MUST(-pthread_create(&thread, NULL, shut_down_soon, NULL));                                                    \
        statement;                                                                                                     \
        pthread_join(thread, NULL);                                                                                    \
    } while (0)

static void server(int listener)
{
    char byte;
    fd_set readable;
    int fd = accept_warm(listener);
    signal(SIGPIPE, SIG_IGN);
    stage("recv");
    SHUT_DOWN_DURING(SHUT_RDWR, fd, say_result("recv", recv(fd, &byte, 1, 0)));
    stage("recv, SHUT_RD");
    fd = accept_warm(listener);
    SHUT_DOWN_DURING(SHUT_RD, fd, say_result("recv, SHUT_RD", recv(fd, &byte, 1, 0)));
    stage("send");
    fd = accept_warm(listener);
    fill_up(fd);
    SHUT_DOWN_DURING(SHUT_RDWR, fd, say_result("send", send(fd, "x", 1, 0)));
    tell();
    stage("send, SHUT_WR");
    fd = accept_warm(listener);
    fill_up(fd);
    SHUT_DOWN_DURING(SHUT_WR, fd, say_result("send, SHUT_WR", send(fd, "x", 1, 0)));
    tell();
    stage("poll");
    fd = accept_warm(listener);
    SHUT_DOWN_DURING(SHUT_RD, fd, say_poll("poll", fd, POLLIN | POLLRDHUP, -1));
    stage("select");
    fd = accept_warm(listener);
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    SHUT_DOWN_DURING(SHUT_RD, fd, say_result("select", select(fd + 1, &readable, NULL, NULL, NULL)));
    stage("epoll_wait");
    fd = accept_warm(listener);
    int set = MUST(epoll_create1(0));
    epoll_add(set, fd, EPOLLIN | EPOLLRDHUP);
    SHUT_DOWN_DURING(SHUT_RD, fd, await_epoll(set, -1, "epoll_wait"));
    stage("accept");
    SHUT_DOWN_DURING(SHUT_RD, listener, say_result("accept", accept(listener, NULL, NULL)));
    meet();
}

static void client(int port)
{
    static char bytes[65536];
    int streams[7];
    for (int i = 0; i < 7; i++) {
        int fd = streams[i] = connect_to(port);
        warm(fd, CLIENT);
        if (i == 2 || i == 3) {
            hear();
            while (recv_all(fd, bytes, sizeof bytes))
                ;
            say("the end");
        }
    }
    meet();
}

ROLES(server, client)
