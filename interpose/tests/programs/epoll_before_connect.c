/* Sockets that are registered in epoll before they are connected, bound or accepted; the registration stays. */
#include "program.h"

static void serve_by_epoll(int set, int fd)
{
    char bytes[100];
    size_t total = 0;
    for (;;) {
        struct epoll_event event;
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.data.fd != fd)
            continue;
        long got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0)
            break;
        if (got > 0) {
            send_all(fd, bytes, got);
            total += got;
        }
    }
    say("echoed: %zu", total);
}

static void server(int listener)
{
    int set = MUST(epoll_create1(0));
    epoll_add(set, listener, EPOLLIN);
    await_epoll(set, 10000, "listener");
    int fd = accept_one(listener);
    epoll_add(set, fd, EPOLLIN | EPOLLRDHUP);
    serve_by_epoll(set, fd);
}

static void client(int port)
{
    struct sockaddr_in address = loopback(port), any = loopback(0);
    char bytes[100];
    int set = MUST(epoll_create1(0)), error = -1;
    socklen_t length = sizeof error;
    int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 0x123456789abcdef0};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    await_epoll(set, 0, "not connected");
    MUST(bind(fd, (struct sockaddr *)&any, sizeof any));
    say_result("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
    do
        MUST(epoll_wait(set, &event, 1, 10000));
    while (event.events & EPOLLHUP);
    say_events("connected", 1, event.events);
    say_yes("data", event.data.u64 == 0x123456789abcdef0);
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("SO_ERROR: %d", error);
    for (int round = 0; round < 400; round++) {
        size_t size = 1 + round % 100, done = 0;
        fill(round, 0, bytes, size);
        send_all(fd, bytes, size);
        while (done < size) {
            long got = recv(fd, bytes + done, size - done, 0);
            if (got > 0)
                done += got;
            else if (got == 0 || errno != EAGAIN)
                die("recv");
            else
                MUST(epoll_wait(set, &event, 1, -1));
        }
        if (!intact(round, 0, bytes, size))
            die("echo");
    }
    say("echoes came back");
    close(fd);
}

ROLES(server, client)
