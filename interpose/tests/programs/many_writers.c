/*
 * Several threads write to one stream. While there is room a send is never interleaved with another; when the stream
 * is full, each thread's bytes still come in full number.
 */
#include "program.h"

enum { WRITERS = 6, MESSAGES = 600, SIZE = 64, ROUND = 10, FULL = 6000, LARGE = 3001 };

static int stream;
static pthread_barrier_t step;

static void *small_messages(void *argument)
{
    long writer = (long)argument;
    char message[SIZE];
    for (int i = 0; i < MESSAGES; i++) {
        if (i % ROUND == 0) { /* so that the window is never full: the peer has read the round before */
            if (pthread_barrier_wait(&step) == PTHREAD_BARRIER_SERIAL_THREAD)
                hear();
            pthread_barrier_wait(&step);
        }
        memset(message, writer * 16 + i % 16, sizeof message);
        if (send(stream, message, sizeof message, 0) != SIZE)
            die("send");
    }
    return NULL;
}

static void *large_messages(void *argument)
{
    long writer = (long)argument;
    char message[LARGE];
    for (int i = 0; i < FULL / WRITERS; i++) {
        memset(message, writer, sizeof message);
        send_all(stream, message, sizeof message);
    }
    return NULL;
}

static void client(int fd)
{
    pthread_t threads[WRITERS];
    void *(*kinds[])(void *) = {small_messages, large_messages};
    stream = fd;
    warm(fd, CLIENT);
    pthread_barrier_init(&step, NULL, WRITERS);
    for (int kind = 0; kind < 2; kind++) {
        stage(kind ? "large" : "small");
        for (long i = 0; i < WRITERS; i++)
            MUST(-pthread_create(&threads[i], NULL, kinds[kind], (void *)i));
        for (int i = 0; i < WRITERS; i++)
            pthread_join(threads[i], NULL);
    }
    say("written");
    meet();
}

static void server(int fd)
{
    static unsigned char message[SIZE], piece[65536];
    int next[WRITERS] = {0}, whole = 1;
    size_t counts[WRITERS] = {0};
    warm(fd, SERVER);
    for (int i = 0; i < WRITERS * MESSAGES; i++) {
        if (i % (WRITERS * ROUND) == 0)
            tell();
        if (recv_all(fd, message, SIZE) != SIZE || message[0] / 16 >= WRITERS)
            die("recv");
        for (int b = 1; b < SIZE; b++)
            whole = whole && message[b] == message[0];
        whole = whole && message[0] % 16 == next[message[0] / 16]++ % 16;
    }
    say_yes("messages whole and in each writer's order", whole);
    for (size_t left = (size_t)FULL * LARGE, got; left; left -= got) {
        got = recv_all(fd, piece, left < sizeof piece ? left : sizeof piece);
        for (size_t b = 0; b < got; b++)
            counts[piece[b] % WRITERS]++;
    }
    for (int i = 0; i < WRITERS; i++)
        say("writer %d: %zu", i, counts[i]);
    meet();
}

PAIR(server, client)
