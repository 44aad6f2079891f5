/* MSG_MORE and TCP_CORK: many pieces, in order and complete; a tail that is never followed comes in its time too. */
#include "program.h"

static void server(int fd)
{
    char bytes[2000];
    warm(fd, SERVER);
    for (int i = 0; i < 20; i++) {
        say_result("pieces", recv(fd, bytes, 1000, MSG_WAITALL));
        say_yes("intact", intact(1, 0, bytes, 1000));
        tell();
    }
    say_result("a tail alone", recv(fd, bytes, 10, MSG_WAITALL));
    tell();
    say_result("corked", recv(fd, bytes, 1000, MSG_WAITALL));
    say_yes("intact", intact(1, 0, bytes, 1000));
    tell();
    say_result("corked and left", recv(fd, bytes, 10, MSG_WAITALL));
    tell();
    say_result("closed while corked", recv(fd, bytes, 1000, MSG_WAITALL));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

static void client(int fd)
{
    char bytes[1000];
    int on = 1, off = 0, seen = -1;
    socklen_t length = sizeof seen;
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    for (int i = 0; i < 20; i++) {
        for (int sent = 0; sent < 1000; sent += 50)
            MUST(send(fd, bytes + sent, 50, sent < 950 ? MSG_MORE : 0));
        hear();
    }
    send(fd, bytes, 10, MSG_MORE);
    hear();
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &seen, &length));
    say("TCP_CORK: %d", seen);
    for (int sent = 0; sent < 1000; sent += 50)
        MUST(send(fd, bytes + sent, 50, 0));
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off));
    hear();
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    send_all(fd, bytes, 10);
    hear();
    send_all(fd, bytes, 500);
    close(fd);
}

PAIR(server, client)
