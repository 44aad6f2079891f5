/*
 * Threads open, use and close connections, while bystanders make harmless calls on the same numbers, whatever these
 * happen to name at the moment: nobody's bytes suffer, and nobody crashes.
 */
#include "program.h"

enum { USERS = 4, BYSTANDERS = 2, MS = 1500 };

static int listener, port;
static volatile int stop;
static volatile int numbers[USERS];

static void *echo(void *number)
{
    int fd = (int)(long)number;
    char bytes[4096];
    for (long got; (got = recv(fd, bytes, sizeof bytes, 0)) > 0;)
        if (send(fd, bytes, got, MSG_NOSIGNAL) < 0)
            break;
    close(fd);
    return NULL;
}

static void *serve(void *unused)
{
    (void)unused;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        pthread_t thread;
        MUST(-pthread_create(&thread, NULL, echo, (void *)(long)fd));
        pthread_detach(thread);
    }
    return NULL;
}

static void *bystander(void *seed)
{
    unsigned random = (long)seed;
    char bytes[8];
    int value;
    socklen_t size = sizeof value;
    while (!stop) {
        int fd = numbers[rand_r(&random) % USERS];
        struct pollfd entry = {fd, POLLIN | POLLOUT, 0};
        if (fd <= 0)
            continue;
        switch (rand_r(&random) % 7) {
        case 0:
            recv(fd, bytes, 0, MSG_DONTWAIT);
            break;
        case 1:
            recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
            break;
        case 2:
            ioctl(fd, FIONREAD, &value);
            break;
        case 3:
            poll(&entry, 1, 0);
            break;
        case 4:
            value = fcntl(fd, F_GETFL);
            if (value >= 0)
                fcntl(fd, F_SETFL, value);
            break;
        case 5:
            value = 200000;
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value);
            break;
        case 6:
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size);
            break;
        }
    }
    return NULL;
}

static void *user(void *place)
{
    unsigned random = 7 + (long)place;
    char bytes[300], answer[300];
    for (uint64_t turn = 0; !stop; turn++) {
        int fd = connect_to(port);
        numbers[(long)place] = fd;
        for (int round = rand_r(&random) % 200; round > 0; round--) {
            size_t size = 1 + rand_r(&random) % sizeof bytes;
            fill((long)place, turn * 1000 + round, bytes, size);
            send_all(fd, bytes, size);
            if (recv_all(fd, answer, size) != size || memcmp(bytes, answer, size))
                die("echo");
        }
        MUST(close(fd));
    }
    return NULL;
}

static void self(void)
{
    pthread_t threads[USERS + BYSTANDERS], server;
    listener = listen_any(&port);
    MUST(-pthread_create(&server, NULL, serve, NULL));
    for (long i = 0; i < USERS + BYSTANDERS; i++)
        MUST(-pthread_create(&threads[i], NULL, i < USERS ? user : bystander, (void *)i));
    sleep_ms(MS);
    stop = 1;
    stage("join");
    for (int i = 0; i < USERS + BYSTANDERS; i++)
        MUST(-pthread_join(threads[i], NULL));
    say("well");
}

SELF(self)
