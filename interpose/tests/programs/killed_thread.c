/*
 * Threads leave by pthread_exit and by cancellation: blocked in each kind of wait, and at any call of a busy loop. The
 * others go on with the same stream.
 */
#include "numbered.h"

enum { ROUNDS = 150, MARK = 'x', END = 0xff };

static int stream, set, way;

/* ---- blocked, or looking again and again ---- */

static void *wait_for_bytes(void *unused)
{
    char byte[2];
    struct pollfd entry = {.fd = stream, .events = POLLIN};
    struct iovec parts[] = {{byte, 1}, {byte + 1, 1}};
    struct epoll_event event;
    fd_set readable;
    (void)unused;
    FD_ZERO(&readable);
    FD_SET(stream, &readable);
    switch (way) {
    case 0:
        recv(stream, byte, 1, 0);
        break;
    case 1:
        (void)!read(stream, byte, 1);
        break;
    case 2:
        (void)!readv(stream, parts, 2);
        break;
    case 3:
        recv(stream, byte, 2, MSG_PEEK | MSG_WAITALL);
        break;
    case 4:
        poll(&entry, 1, -1);
        break;
    case 5:
        select(stream + 1, &readable, NULL, NULL, NULL);
        break;
    case 6:
        epoll_wait(set, &event, 1, -1);
        break;
    case 7:
        for (;;)
            recv(stream, byte, 1, MSG_DONTWAIT);
    case 8:
        for (;;)
            poll(&entry, 1, 0);
    case 9:
        for (;;)
            epoll_wait(set, &event, 1, 0);
    }
    return NULL;
}

static const char *ways[] = {"recv", "read", "readv", "peek", "poll", "select", "epoll_wait",
                             "recv without waiting", "poll without waiting", "epoll_wait without waiting"};
enum { WAYS = sizeof ways / sizeof *ways };

static void *send_on(void *unused)
{
    static char zeros[65536];
    (void)unused;
    for (;;)
        send_all(stream, zeros, sizeof zeros);
    return NULL;
}

/* A thread runs `body` for so long, is cancelled, and ends. */
static void cancel_after(void *(*body)(void *), long microseconds, const char *what)
{
    pthread_t thread;
    void *result;
    stage(what);
    MUST(-pthread_create(&thread, NULL, body, NULL));
    usleep(microseconds);
    MUST(-pthread_cancel(thread));
    MUST(-pthread_join(thread, &result));
    if (result != PTHREAD_CANCELED)
        die("not cancelled");
}

static void *talk_and_leave(void *unused)
{
    (void)unused;
    ping_pong(stream, SERVER, 50);
    pthread_exit((void *)1);
}

/* ---- at any call ---- */

/* What the leaving ones send is zeros; the steady one counts, and says when it ends. */
static int enough;

static void *send_zeros(void *unused)
{
    uint64_t random = now_ms();
    char zeros[3000] = {0};
    (void)unused;
    for (;;)
        MUST(send(stream, zeros, 1 + next_random(&random, sizeof zeros), MSG_NOSIGNAL));
    return NULL;
}

static void *send_count(void *unused)
{
    unsigned char message[200];
    unsigned count = 0;
    (void)unused;
    while (!__atomic_load_n(&enough, __ATOMIC_ACQUIRE)) {
        for (size_t i = 0; i < sizeof message; i++)
            message[i] = 0x80 | count++ % 127;
        send_all(stream, message, sizeof message);
    }
    send_all(stream, (unsigned char[]){END}, 1);
    return NULL;
}

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_number;
static int left;

static void leave_reading(void *unused)
{
    (void)unused;
    left++;
    pthread_mutex_unlock(&reading);
}

static void read_one(void)
{
    struct pollfd entry = {.fd = stream, .events = POLLIN};
    struct epoll_event event;
    pthread_mutex_lock(&reading);
    pthread_cleanup_push(leave_reading, NULL);
    if (way == 1)
        poll(&entry, 1, -1);
    if (way == 2)
        epoll_wait(set, &event, 1, -1);
    if (!receive_numbered(stream, left, &next_number))
        die("the end");
    pthread_cleanup_pop(0);
    left = 0;
    pthread_mutex_unlock(&reading);
}

static void *read_on(void *unused)
{
    (void)unused;
    for (;;)
        read_one();
    return NULL;
}

static void server(int fd)
{
    uint64_t random = now_ms();
    pthread_t other;
    void *result;
    stream = fd;
    set = MUST(epoll_create1(0));
    warm(fd, SERVER);
    epoll_add(set, fd, EPOLLIN);
    for (way = 0; way < WAYS; way++) {
        for (int i = 0; i < 5; i++) {
            cancel_after(wait_for_bytes, i * 5000, ways[way]);
            tell();
            MUST(-pthread_create(&other, NULL, talk_and_leave, NULL));
            MUST(-pthread_join(other, &result));
            if (result != (void *)1)
                die("not left");
            ping_pong(fd, SERVER, 50);
        }
        say("%s cancelled", ways[way]);
    }

    for (int i = 0; i < 5; i++) {
        cancel_after(send_on, i * 10000, "send"); /* nobody reads: soon it is blocked */
        tell();
        send_all(fd, (char[]){MARK}, 1);
        warm(fd, SERVER);
    }
    say("send cancelled");

    MUST(-pthread_create(&other, NULL, send_count, NULL));
    for (int i = 0; i < ROUNDS; i++)
        cancel_after(send_zeros, next_random(&random, 2000), "a busy sender");
    __atomic_store_n(&enough, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    warm(fd, SERVER);
    say("busy senders cancelled");

    MUST(-pthread_create(&other, NULL, read_on, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        way = i % 3;
        cancel_after(read_on, next_random(&random, 2000), "a busy receiver");
        read_one();
    }
    pthread_cancel(other);
    pthread_join(other, NULL);
    tell();
    stage("the last message");
    while (receive_numbered(fd, left, &next_number))
        left = 0;
    say("busy receivers cancelled");
}

static void client(int fd)
{
    static unsigned char piece[65536];
    unsigned count = 0;
    warm(fd, CLIENT);
    for (int i = 0; i < WAYS * 5; i++) {
        hear();
        ping_pong(fd, CLIENT, 50);
        ping_pong(fd, CLIENT, 50);
    }
    stage("zeros");
    for (int i = 0; i < 5; i++) {
        hear();
        long got;
        do {
            if (!(got = MUST(recv(fd, piece, sizeof piece, 0))))
                die("the end");
        } while (piece[got - 1] != MARK);
        warm(fd, CLIENT);
    }
    stage("busy senders");
    for (int more = 1; more;) {
        long got = MUST(recv(fd, piece, sizeof piece, 0));
        if (!got)
            die("the end");
        for (long i = 0; i < got; i++) {
            if (piece[i] == END)
                more = 0;
            else if (piece[i] && piece[i] != (0x80 | count++ % 127))
                die("a byte");
        }
    }
    warm(fd, CLIENT);
    stage("busy receivers");
    send_numbered(fd);
    MUST(shutdown(fd, SHUT_WR));
    stage("the end");
    say_yes("ended", recv_all(fd, piece, 1) == 0);
}

PAIR(server, client)
