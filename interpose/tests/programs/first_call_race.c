/* 64 threads make the first socket calls of the process at once, and then talk at once. */
#include "program.h"

enum { THREADS = 64, ROUNDS = 60 };

static pthread_barrier_t together;
static int shared_listener, shared_port;
static int finished;

static void *connecting(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&together);
    int fd = connect_to(shared_port);
    ping_pong(fd, CLIENT, ROUNDS);
    MUST(close(fd));
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void *accepting(void *unused)
{
    char byte;
    (void)unused;
    pthread_barrier_wait(&together);
    int fd = accept_one(shared_listener);
    ping_pong(fd, SERVER, ROUNDS);
    if (recv(fd, &byte, 1, 0) == 0)
        __atomic_add_fetch(&finished, 1, __ATOMIC_RELAXED);
    MUST(close(fd));
    return NULL;
}

static void server(int listener)
{
    shared_listener = listener;
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(THREADS, accepting);
    say("finished: %d", finished);
}

static void client(int port)
{
    shared_port = port;
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(THREADS, connecting);
    say("finished: %d", finished);
}

ROLES(server, client)
