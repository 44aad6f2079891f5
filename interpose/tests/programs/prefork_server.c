/* Children that were forked before accept connections, others are forked for one connection each; the parent closes. */
#include "program.h"

enum { WORKERS = 3, EACH = 8 };

static void serve(int fd)
{
    char byte;
    ping_pong(fd, SERVER, 100);
    if (recv(fd, &byte, 1, 0) != 0)
        die("end");
    close(fd);
}

static void server(int listener)
{
    int status, failed = 0;
    for (int i = 0; i < WORKERS; i++)
        if (!MUST(fork())) {
            watchdog();
            for (int n = 0; n < EACH; n++)
                serve(accept_one(listener));
            exit(0);
        }
    for (int i = 0; i < WORKERS; i++)
        failed += MUST(wait(&status)) > 0 && status;
    say("workers failed: %d", failed);
    for (int i = 0; i < EACH; i++) {
        int fd = accept_one(listener);
        ping_pong(fd, SERVER, 100); /* moved before the fork */
        if (!MUST(fork())) {
            watchdog();
            close(listener);
            serve(fd);
            exit(0);
        }
        close(fd);
    }
    failed = 0;
    for (int i = 0; i < EACH; i++)
        failed += MUST(wait(&status)) > 0 && status;
    say("children failed: %d", failed);
}

static void client(int port)
{
    for (int i = 0; i < WORKERS * EACH + EACH; i++) {
        int fd = connect_to(port);
        ping_pong(fd, CLIENT, 100);
        if (i >= WORKERS * EACH)
            ping_pong(fd, CLIENT, 100);
        close(fd);
    }
    say("all served");
}

ROLES(server, client)
