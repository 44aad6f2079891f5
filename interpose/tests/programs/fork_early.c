/* A server that forks between its first few messages, while the ends are still looking for each other; the children
 * are gone before the bulk comes. Offers that were under way must not keep the ends apart. */
#include "program.h"

enum { FORKS = 12, TURNS = 4000 };

static void server(int fd)
{
    int status, failed = 0;
    for (int i = 0; i < FORKS; i++) {
        ping_pong(fd, SERVER, 1 + i % 3);
        if (!MUST(fork()))
            _exit(0);
        failed += MUST(wait(&status)) > 0 && status;
    }
    say("children failed: %d", failed);
    ping_pong(fd, SERVER, TURNS);
    meet();
}

static void client(int fd)
{
    for (int i = 0; i < FORKS; i++)
        ping_pong(fd, CLIENT, 1 + i % 3);
    ping_pong(fd, CLIENT, TURNS);
    say("all answered");
    meet();
}

PAIR(server, client)
