/*
 * A listener hands each readable connection to a worker, and takes it out of its set; the worker answers and adds it
 * again while the listener waits (Apache's event MPM). No connection is reported twice in one wait, or while a worker
 * has it.
 */
#include "program.h"
#include <stdatomic.h>

enum { CLIENTS = 16, ROUNDS = 150, EACH = 4, WORKERS = 8, CONNECTIONS = CLIENTS * EACH };

static int set, queue[2];
static _Atomic int busy[4096];
static atomic_int twice, at_work, nothing, ended;

static void *worker(void *unused)
{
    int fd;
    char bytes[64];
    while (read(queue[0], &fd, sizeof fd) == sizeof fd) {
        long got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            nothing++;
        busy[fd] = 0;
        if (!got) {
            close(fd);
            ended++;
            continue;
        }
        if (got > 0)
            send_all(fd, bytes, got);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    }
    return unused;
}

static void server(int listener)
{
    pthread_t threads[WORKERS];
    struct epoll_event events[64], event = {.events = EPOLLIN, .data.fd = listener};
    set = MUST(epoll_create1(0));
    MUST(pipe(queue));
    for (int i = 0; i < WORKERS; i++)
        MUST(-pthread_create(&threads[i], NULL, worker, NULL));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
    while (ended < CONNECTIONS) {
        int count = MUST(epoll_wait(set, events, 64, 100));
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                fd = accept_one(listener);
                event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
                continue;
            }
            for (int j = 0; j < i; j++)
                twice += events[j].data.fd == fd;
            if (busy[fd]) {
                at_work++;
                continue;
            }
            busy[fd] = 1;
            MUST(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
            MUST(write(queue[1], &fd, sizeof fd));
        }
    }
    say("twice in one wait: %d, while at work: %d, with nothing to read: %d", twice, at_work, nothing);
}

static void *talk(void *port)
{
    char bytes[64];
    for (int i = 0; i < EACH; i++) {
        int fd = connect_to(*(int *)port);
        for (int round = 0; round < ROUNDS; round++) {
            fill(round, 0, bytes, sizeof bytes);
            send_all(fd, bytes, sizeof bytes);
            if (recv_all(fd, bytes, sizeof bytes) != sizeof bytes || !intact(round, 0, bytes, sizeof bytes))
                die("answer");
        }
        close(fd);
    }
    return NULL;
}

static void client(int port)
{
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        MUST(-pthread_create(&threads[i], NULL, talk, &port));
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    say("all answers came");
}

int main(int argc, char **argv)
{
    return run_role(argc, argv, (struct roles){.server = server, .client = client});
}
