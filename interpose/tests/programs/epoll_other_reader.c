/* One thread waits in epoll, another reads the same stream empty: the first neither spins nor hangs. */
#include "program.h"

enum { MESSAGES = 3000 };

static int set, stream, finish[2];
static size_t by_waiter, by_reader;

static void *wait_in_epoll(void *unused)
{
    char bytes[64];
    (void)unused;
    for (;;) {
        struct epoll_event event;
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.data.fd == finish[0])
            return NULL;
        long got = recv(stream, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got > 0)
            __atomic_add_fetch(&by_waiter, got, __ATOMIC_RELAXED);
    }
}

static void *read_blocking(void *unused)
{
    char bytes[64];
    (void)unused;
    for (;;) {
        long got = MUST(recv(stream, bytes, sizeof bytes, 0));
        if (!got)
            return NULL;
        __atomic_add_fetch(&by_reader, got, __ATOMIC_RELAXED);
    }
}

static long cpu_ms(pthread_t thread)
{
    clockid_t clock;
    struct timespec used;
    MUST(-pthread_getcpuclockid(thread, &clock));
    MUST(clock_gettime(clock, &used));
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void server(int fd)
{
    pthread_t waiter, reader;
    stream = fd;
    warm(fd, SERVER);
    set = MUST(epoll_create1(0));
    MUST(pipe(finish));
    epoll_add(set, fd, EPOLLIN);
    epoll_add(set, finish[0], EPOLLIN);
    MUST(-pthread_create(&waiter, NULL, wait_in_epoll, NULL));
    MUST(-pthread_create(&reader, NULL, read_blocking, NULL));
    meet();
    hear(); /* all was sent */
    while (__atomic_load_n(&by_waiter, __ATOMIC_RELAXED) + __atomic_load_n(&by_reader, __ATOMIC_RELAXED) <
           MESSAGES * 10)
        sleep_ms(1);
    sleep_ms(50);
    long used = cpu_ms(waiter) + cpu_ms(reader);
    sleep_ms(400);
    say_yes("idle when nothing is there", cpu_ms(waiter) + cpu_ms(reader) - used < 150);
    MUST(write(finish[1], "x", 1));
    pthread_join(waiter, NULL);
    tell();
    pthread_join(reader, NULL);
    say("received: %zu", by_waiter + by_reader);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    for (int i = 0; i < MESSAGES; i++) {
        send_all(fd, "0123456789", 10);
        if (i % 50 == 0)
            sleep_ms(1);
    }
    tell();
    hear();
    close(fd);
}

PAIR(server, client)
