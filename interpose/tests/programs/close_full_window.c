/*
 * close, and exit, into a full window: they return at once, and a reader that comes later gets every byte, then the
 * end. A reader that closes instead resets, and nobody hangs.
 */
#include "program.h"

static void server(int listener)
{
    static char bytes[65536];
    for (int i = 0; i < 3; i++) {
        size_t total = 0, sent;
        int fd = accept_warm(listener);
        stage(i == 0 ? "close" : i == 1 ? "closed by both" : "exit");
        MUST(recv(turns, &sent, sizeof sent, MSG_WAITALL));
        if (i == 1) {
            long start = now_ms();
            say_result("close", close(fd));
            say_time("close", start, 0);
            tell();
            continue;
        }
        sleep_ms(200);
        for (size_t got; (got = recv_all(fd, bytes, sizeof bytes)); total += got)
            ;
        say_yes("all that was sent", total == sent);
        close(fd);
    }
}

static void client(int port)
{
    for (int i = 0; i < 3; i++) {
        int fd = connect_warm(port);
        size_t sent = fill_up(fd);
        say_yes("something was sent", sent > 10000);
        if (i == 0) {
            long start = now_ms();
            say_result("close", close(fd));
            say_time("close", start, 0);
        }
        MUST(send(turns, &sent, sizeof sent, 0));
        if (i == 1) {
            hear();
            await_poll(fd, POLLHUP);
            say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
            close(fd);
        }
    }
}

ROLES(server, client)
