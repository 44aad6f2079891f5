/* A stream is closed with megabytes under way; its number is used again at once, while the old stream still drains. */
#include "program.h"

enum { STREAMS = 12, PIECES = 25 };

static int all_connected[STREAMS];

static void server(int listener)
{
    for (int i = 0; i < STREAMS; i++) {
        all_connected[i] = accept_one(listener);
        warm(all_connected[i], SERVER);
        hear(); /* the client has closed it and goes on with the next; nobody reads yet */
    }
    for (int i = STREAMS - 1; i >= 0; i--) {
        size_t got = recv_pattern(all_connected[i], i, 10 << 20);
        say("stream %d: %zu bytes, then the end", i, got);
        close(all_connected[i]);
    }
}

static void client(int port)
{
    static char piece[4096];
    int first = -1;
    for (int i = 0; i < STREAMS; i++) {
        int fd = connect_to(port);
        if (first < 0)
            first = fd;
        if (fd != first)
            die("another number");
        warm(fd, CLIENT);
        for (int done = 0; done < PIECES; done++) {
            fill(i, (uint64_t)done * sizeof piece, piece, sizeof piece);
            send_all(fd, piece, sizeof piece);
        }
        MUST(close(fd));
        tell();
    }
    say("always the same number");
}

ROLES(server, client)
