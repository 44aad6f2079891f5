/*
 * Small socket buffers push back: a program that relies on them to bound what is under way finds them so, when they
 * are set before the connection is made, and in mid-stream.
 */
#include "program.h"

static int size_of(int fd, int option)
{
    int size = 0;
    socklen_t length = sizeof size;
    MUST(getsockopt(fd, SOL_SOCKET, option, &size, &length));
    return size;
}

static void server(int listener)
{
    static char bytes[65536];
    int small = 8192;
    MUST(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
    tell(); /* connections that are made from now on inherit it */
    for (int i = 0; i < 2; i++) {
        int fd = accept_one(listener);
        say("SO_RCVBUF: %d", size_of(fd, SO_RCVBUF));
        warm(fd, SERVER);
        hear();
        size_t total = 0;
        for (size_t got; (got = recv_all(fd, bytes, sizeof bytes)); total += got)
            ;
        say_yes("received", total > 0);
        close(fd);
    }
}

static void client(int port)
{
    int small = 8192;
    hear();
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in address = loopback(port);
        int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
        if (i == 0)
            MUST(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
        MUST(connect(fd, (struct sockaddr *)&address, sizeof address));
        warm(fd, CLIENT);
        if (i == 1)
            MUST(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
        say("SO_SNDBUF: %d", size_of(fd, SO_SNDBUF));
        size_t sent = fill_up(fd);
        say_yes("pushed back", sent < 200000);
        if (sent >= 200000)
            fprintf(stderr, "%zu bytes were taken\n", sent);
        tell();
        close(fd);
    }
}

ROLES(server, client)
