/*
 * close by one thread while another is blocked on the stream: the kernel keeps the stream until the blocked call is
 * over, so the call goes on, gets the peer's bytes, and the peer sees the end only then. In epoll the registration is
 * gone at once.
 */
#include "program.h"

static int stream;

static void *close_soon(void *unused)
{
    (void)unused;
    sleep_ms(80);
    MUST(close(stream));
    sleep_ms(80);
    tell(); /* now the peer sends */
    return NULL;
}

#define CLOSED_DURING(fd, statement)                                                                                   \
    do {                                                                                                               \
        pthread_t thread;                                                                                              \
        stream = fd;                                                                                                   \
        MUST(-pthread_create(&thread, NULL, close_soon, NULL));                                                        \
        statement;                                                                                                     \
        pthread_join(thread, NULL);                                                                                    \
        tell();                                                                                                        \
    } while (0)

static void server(int listener)
{
    char bytes[10];
    stage("recv");
    int fd = accept_warm(listener);
    CLOSED_DURING(fd, say_result("recv", recv(fd, bytes, 5, MSG_WAITALL)));
    stage("poll");
    fd = accept_warm(listener);
    CLOSED_DURING(fd, say_poll("poll", fd, POLLIN, -1));
    say_result("recv, closed", recv(fd, bytes, 5, 0));
    stage("epoll_wait");
    fd = accept_warm(listener);
    int set = MUST(epoll_create1(0));
    epoll_add(set, fd, EPOLLIN);
    CLOSED_DURING(fd, await_epoll(set, 600, "epoll_wait"));
    meet();
}

static void client(int port)
{
    char byte;
    for (int i = 0; i < 3; i++) {
        int fd = connect_warm(port);
        hear();
        if (i < 2)
            say_poll("not closed yet", fd, POLLIN | POLLRDHUP, 0);
        send_all(fd, "12345", 5);
        hear();
        /* Bytes that nobody read before the last reference went make it a reset. */
        say_result("at the end", recv(fd, &byte, 1, 0));
        close(fd);
    }
    meet();
}

ROLES(server, client)
