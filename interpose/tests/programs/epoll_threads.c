/* Four threads in one epoll serve eight one-shot streams; whoever gets an event answers and arms again. */
#include "program.h"

enum { STREAMS = 8, THREADS = 4, ROUNDS = 300 };

static int set, streams[STREAMS], finish[2], ended, answered;

static void *serve(void *unused)
{
    char byte;
    (void)unused;
    for (;;) {
        struct epoll_event event;
        MUST(epoll_wait(set, &event, 1, -1));
        int fd = event.data.fd;
        if (fd == finish[0])
            return NULL;
        long got = MUST(recv(fd, &byte, 1, 0));
        if (got) {
            byte++;
            send_all(fd, &byte, 1);
            __atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
            epoll_mod(set, fd, EPOLLIN | EPOLLONESHOT);
        } else if (__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED) == STREAMS) {
            MUST(write(finish[1], "x", 1));
        }
    }
}

static void server(int listener)
{
    pthread_t threads[THREADS];
    set = MUST(epoll_create1(0));
    MUST(pipe(finish));
    epoll_add(set, finish[0], EPOLLIN);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = accept_one(listener);
        epoll_add(set, streams[i], EPOLLIN | EPOLLONESHOT);
    }
    for (int i = 0; i < THREADS; i++)
        MUST(-pthread_create(&threads[i], NULL, serve, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("answered: %d, ended: %d", answered, ended);
}

static void *ask(void *argument)
{
    int fd = *(int *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char byte = i, answer = 0;
        send_all(fd, &byte, 1);
        recv_all(fd, &answer, 1);
        if (answer != (unsigned char)(byte + 1))
            die("answer");
    }
    close(fd);
    return NULL;
}

static void client(int port)
{
    pthread_t threads[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        streams[i] = connect_to(port);
    for (int i = 0; i < STREAMS; i++)
        MUST(-pthread_create(&threads[i], NULL, ask, &streams[i]));
    for (int i = 0; i < STREAMS; i++)
        pthread_join(threads[i], NULL);
    say("all answered");
}

ROLES(server, client)
