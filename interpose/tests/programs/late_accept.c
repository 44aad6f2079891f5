/*
 * Bytes are queued in TCP before the other end has accepted, and for longer: the client has said all it has to say,
 * even its end, before the server looks. Then streams whose one end begins to talk late.
 */
#include "program.h"

static void server(int listener)
{
    char byte;
    hear();
    int fd = accept_one(listener);
    say("queued: %zu", recv_pattern(fd, 1, 30000));
    warm(fd, SERVER);
    say("queued, then more: %zu", recv_pattern(fd, 2, 1 << 20));
    close(fd);

    hear();
    fd = accept_one(listener);
    say("queued, and closed: %zu", recv_pattern(fd, 3, 1 << 20));
    say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
    close(fd);

    /* Accepted, and left alone for a while in which the peer sends many small messages. */
    fd = accept_one(listener);
    hear();
    say("many: %zu", recv_pattern(fd, 4, 20000));
    warm(fd, SERVER);
    send_pattern(fd, 5, 20000); /* and the other way */
    tell();
    say_result("at the end", recv(fd, &byte, 1, 0));
    close(fd);
}

static void client(int port)
{
    char bytes[20];
    int fd = connect_to(port);
    for (int i = 0; i < 300; i++) {
        fill(1, i * 100, bytes, 20);
        send_all(fd, bytes, 20);
        fill(1, i * 100 + 20, bytes, 20);
        send_all(fd, bytes, 20);
        char more[60];
        fill(1, i * 100 + 40, more, 60);
        send_all(fd, more, 60);
    }
    sleep_ms(100);
    tell();
    warm(fd, CLIENT);
    send_pattern(fd, 2, 300000);
    close(fd);

    fd = connect_to(port);
    send_pattern(fd, 3, 30000);
    close(fd);
    tell();

    fd = connect_to(port);
    for (int i = 0; i < 1000; i++) {
        fill(4, i * 20, bytes, 20);
        send_all(fd, bytes, 20);
    }
    sleep_ms(100);
    tell();
    warm(fd, CLIENT);
    hear();
    sleep_ms(50);
    say("many back: %zu", recv_pattern(fd, 5, 20000));
    close(fd);
}

ROLES(server, client)
