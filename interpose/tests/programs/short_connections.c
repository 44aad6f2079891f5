/* Many short connections, one after another and from four threads; some talk a little longer than others. */
#include "program.h"

enum { CONNECTIONS = 1200, THREADS = 4 };

static int shared_listener, shared_port, finished;

static void *serve(void *unused)
{
    (void)unused;
    for (int i = 0; i < CONNECTIONS / THREADS; i++) {
        char rounds, byte;
        int fd = accept_one(shared_listener);
        if (recv_all(fd, &rounds, 1) == 1) {
            ping_pong(fd, SERVER, rounds);
            if (recv(fd, &byte, 1, 0) == 0)
                __atomic_add_fetch(&finished, 1, __ATOMIC_RELAXED);
        }
        MUST(close(fd));
    }
    return NULL;
}

static void *ask(void *unused)
{
    (void)unused;
    for (int i = 0; i < CONNECTIONS / THREADS; i++) {
        char rounds = i % 10 ? i % 4 : 60;
        int fd = connect_to(shared_port);
        send_all(fd, &rounds, 1);
        ping_pong(fd, CLIENT, rounds);
        MUST(close(fd));
        __atomic_add_fetch(&finished, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void server(int listener)
{
    shared_listener = listener;
    run_threads(THREADS, serve);
    say("finished: %d", finished);
}

static void client(int port)
{
    shared_port = port;
    run_threads(THREADS, ask);
    say("finished: %d", finished);
}

ROLES(server, client)
