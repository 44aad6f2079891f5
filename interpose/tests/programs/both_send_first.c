/*
 * Both ends send megabytes before either reads, and blocking: as much as the socket buffers are asked to hold, so on
 * plain TCP nobody waits for anybody.
 */
#include "program.h"

enum { BYTES = 3 << 20 };

static void large_buffers(int fd)
{
    int size = 6 << 20;
    /* Beyond what an ordinary user may have: then without the force, and with fewer bytes. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
        MUST(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        MUST(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
}

static size_t amount(int fd)
{
    int size = 0;
    socklen_t length = sizeof size;
    MUST(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length));
    return size >= 12 << 20 ? BYTES : (size_t)size / 4;
}

static void either(int fd, enum side side)
{
    warm(fd, side);
    large_buffers(fd);
    size_t bytes = amount(fd);
    for (int round = 0; round < 3; round++) {
        meet();
        stage("send");
        send_pattern(fd, 10 * round + side, bytes);
        meet();
        stage("receive");
        size_t got = recv_pattern(fd, 10 * round + !side, bytes);
        say_yes("received", got == bytes);
    }
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
