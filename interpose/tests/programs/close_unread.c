/* close with unread bytes resets the peer: ECONNRESET once, then the end; what it had sent before is still there. */
#include "program.h"

enum { EVERY = POLLIN | POLLOUT | POLLRDHUP };

static void look(int fd, const char *title)
{
    char bytes[100];
    say("-- %s", title);
    await_poll(fd, POLLHUP | POLLERR);
    say_poll("poll", fd, EVERY, 0);
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));
    say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));
    say_poll("poll", fd, EVERY, 0);
    close(fd);
}

static void server(int listener)
{
    char bytes[100] = "";
    int fd = accept_warm(listener);
    send_all(fd, bytes, 100);
    meet();
    look(fd, "closed with 100 bytes unread");

    fd = accept_warm(listener);
    send_all(fd, bytes, 100);
    await_bytes(fd, 50);
    meet();
    look(fd, "the same, having sent 50");

    fd = accept_warm(listener);
    send_all(fd, bytes, 100);
    meet();
    await_poll(fd, POLLHUP | POLLERR);
    say_result("send first", send(fd, bytes, 1, MSG_NOSIGNAL));
    say_result("send again", send(fd, bytes, 1, MSG_NOSIGNAL));
    say_result("recv", recv(fd, bytes, 1, 0));
    close(fd);

    /* A thread that is blocked when it happens. */
    fd = accept_warm(listener);
    send_all(fd, bytes, 100);
    tell();
    say_result("recv, blocked", recv(fd, bytes, 1, 0));
    close(fd);
}

static void client(int port)
{
    char bytes[50] = "";
    for (int i = 0; i < 4; i++) {
        int fd = connect_warm(port);
        if (i == 1)
            send_all(fd, bytes, 50);
        await_bytes(fd, 100);
        if (i < 3)
            meet();
        else
            hear();
        if (i == 3)
            sleep_ms(80);
        long start = now_ms();
        say_result("close", close(fd));
        say_time("close", start, 0);
    }
}

ROLES(server, client)
