/*
 * Threads whose destructors (pthread keys and thread-locals) allocate and use the stream, at the end of each thread:
 * a hook that had thread-locals with destructors of its own would find them gone.
 */
#include "program.h"

static pthread_key_t key;
static int stream;
static enum side side_now;
static int destructors;

static void at_thread_end(void *value)
{
    destructors++;
    free(value);
    ping_pong(stream, side_now, 20);
    /* A second round of destructors, after those of everyone else. */
    if (destructors % 2)
        pthread_setspecific(key, malloc(100));
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_setspecific(key, malloc(1000));
    ping_pong(stream, side_now, 20);
    return NULL;
}

static void either(int fd, enum side side)
{
    stream = fd;
    side_now = side;
    MUST(-pthread_key_create(&key, at_thread_end));
    warm(fd, side);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        MUST(-pthread_create(&thread, NULL, worker, NULL));
        pthread_join(thread, NULL);
    }
    say("destructors: %d", destructors);
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
