/* MSG_PEEK, alone and with WAITALL and TRUNC, and readiness after a peek. */
#include "program.h"

static void server(int fd)
{
    char bytes[400];
    struct iovec parts[2] = {{bytes, 150}, {bytes + 150, 250}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    warm(fd, SERVER);
    say_result("nothing there", recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT));
    meet();
    await_bytes(fd, 300);
    for (int i = 0; i < 3; i++) {
        say_result("peek", recv(fd, bytes, 100, MSG_PEEK));
        say_yes("intact", intact(1, 0, bytes, 100));
    }
    say_result("peek, more than there is", recv(fd, bytes, sizeof bytes, MSG_PEEK));
    say_yes("intact", intact(1, 0, bytes, 300));
    say_result("peek, recvmsg", recvmsg(fd, &message, MSG_PEEK));
    say_yes("intact", intact(1, 0, bytes, 300));
    say_poll("poll", fd, POLLIN, 0);
    say_result("recv", recv(fd, bytes, 120, 0));
    say_result("peek", recv(fd, bytes, 100, MSG_PEEK));
    say_yes("intact", intact(1, 120, bytes, 100));
    meet();
    /* The other 100 come in small pieces. */
    say_result("peek, waiting for all", recv(fd, bytes, 280, MSG_PEEK | MSG_WAITALL));
    say_yes("intact", intact(1, 120, bytes, 280));
    say_result("recv", recv(fd, bytes, 280, MSG_WAITALL));
    say_yes("intact", intact(1, 120, bytes, 280));
    /* Peeking blocks until there is something. */
    meet();
    say_result("peek, blocked", recv(fd, bytes, 1, MSG_PEEK));
    say_result("recv", recv(fd, bytes, 1, 0));
    meet();
    await_poll(fd, POLLRDHUP);
    say_result("peek at the end", recv(fd, bytes, 1, MSG_PEEK));
}

static void client(int fd)
{
    char bytes[400];
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    meet();
    send_all(fd, bytes, 300);
    meet();
    for (int i = 300; i < 400; i += 10) {
        sleep_ms(5);
        send_all(fd, bytes + i, 10);
    }
    meet();
    sleep_ms(60);
    send_all(fd, bytes, 1);
    meet();
}

PAIR(server, client)
