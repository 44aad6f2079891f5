/*
 * Streams that change their state while threads wait on them in epoll, level-triggered, edge-triggered and one-shot,
 * and the threads have been there from the first byte on.
 */
#include "program.h"

enum { THREADS = 3, ROUNDS = 1500 };

static int set, stream, served;
static unsigned mode;
static int finished[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Echoes all that is there; 0 at the end of the stream. */
static int echo(void)
{
    char bytes[64];
    for (;;) {
        long got = recv(stream, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        send_all(stream, bytes, got);
        served += got;
        if (!(mode & EPOLLET))
            return 1;
    }
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        struct epoll_event event;
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.data.fd != stream)
            return NULL;
        /* One at a time, as bytes must not be echoed out of order. */
        pthread_mutex_lock(&lock);
        int more = echo();
        pthread_mutex_unlock(&lock);
        if (!more) {
            /* Not read by anyone, so it ends all threads. */
            MUST(write(finished[1], "", 1));
            return NULL;
        }
        if (mode & EPOLLONESHOT)
            epoll_mod(set, stream, EPOLLIN | mode);
    }
}

static void server(int listener)
{
    unsigned modes[] = {0, EPOLLET, EPOLLONESHOT, EPOLLONESHOT | EPOLLET};
    for (int i = 0; i < 4; i++) {
        pthread_t threads[THREADS];
        mode = modes[i];
        stage(i == 0 ? "level" : i == 1 ? "edge" : i == 2 ? "one-shot" : "one-shot edge");
        set = MUST(epoll_create1(0));
        MUST(pipe(finished));
        stream = accept_one(listener);
        /* An answer in two parts would else wait for the acknowledgement of the first. */
        MUST(setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
        served = 0;
        epoll_add(set, stream, EPOLLIN | mode);
        epoll_add(set, finished[0], EPOLLIN);
        for (int t = 0; t < THREADS; t++)
            MUST(-pthread_create(&threads[t], NULL, serve, NULL));
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        say("%s: echoed %d", stage_now, served);
        close(stream);
        close(finished[0]);
        close(finished[1]);
        close(set);
    }
}

static void client(int port)
{
    for (int i = 0; i < 4; i++) {
        int fd = connect_to(port);
        ping_pong(fd, CLIENT, ROUNDS);
        say("echoes came back");
        close(fd);
    }
}

ROLES(server, client)
