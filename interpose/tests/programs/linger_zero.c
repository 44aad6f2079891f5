/* SO_LINGER with a time of 0: close resets the peer, with nothing unread too. With a longer time it waits. */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP };

static void server(int listener)
{
    char bytes[2000];
    int fd = accept_warm(listener);
    meet();
    await_poll(fd, POLLHUP | POLLERR);
    say_poll("poll", fd, EVERY, 0);
    say_result("recv", recv(fd, bytes, 1, 0));
    say_result("recv", recv(fd, bytes, 1, 0));

    fd = accept_warm(listener);
    await_bytes(fd, 1000);
    meet();
    await_poll(fd, POLLHUP | POLLERR);
    say_result("bytes that had come", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));

    fd = accept_warm(listener);
    meet();
    say("all of it: %zu", recv_pattern(fd, 1, 1 << 20));
    meet();
}

static void client(int port)
{
    struct linger none = {1, 0}, long_time = {1, 10};
    char bytes[1000] = "";
    for (int i = 0; i < 3; i++) {
        int fd = connect_warm(port);
        MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, i < 2 ? &none : &long_time, sizeof none));
        if (i == 1)
            send_all(fd, bytes, sizeof bytes);
        if (i == 2)
            send_pattern(fd, 1, 30000);
        meet();
        long start = now_ms();
        say_result("close", close(fd));
        say_time("close", start, 0);
    }
    meet();
}

ROLES(server, client)
