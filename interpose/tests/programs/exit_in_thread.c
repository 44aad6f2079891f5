/*
 * exit, _exit, abort and SIGKILL in one thread while others send and receive at full speed. The peer has an intact
 * part of what was sent, and then the end or a reset.
 */
#include "program.h"

enum { ROUNDS = 12 };

static int stream;
static volatile int started;

static void *sending(void *unused)
{
    static char piece[16384];
    (void)unused;
    for (size_t done = 0;; done += sizeof piece) {
        fill(1, done, piece, sizeof piece);
        send_all(stream, piece, sizeof piece);
        started = 1;
    }
    return NULL;
}

static void *receiving(void *unused)
{
    char bytes[3000];
    (void)unused;
    while (recv(stream, bytes, sizeof bytes, 0) > 0)
        ;
    return NULL;
}

static void child(int port, int round)
{
    pthread_t threads[2];
    watchdog();
    stream = connect_to(port);
    ping_pong(stream, CLIENT, 100);
    pthread_create(&threads[0], NULL, sending, NULL);
    pthread_create(&threads[1], NULL, receiving, NULL);
    /* On a busy machine a thread may take its time. */
    while (!started)
        sleep_ms(1);
    sleep_ms(20 + round);
    if (round % 4 == 0)
        exit(0);
    if (round % 4 == 1)
        _exit(0);
    if (round % 4 == 2)
        abort();
    raise(SIGKILL);
}

static void client(int port)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (int round = 0; round < ROUNDS; round++) {
        int status;
        pid_t pid = MUST(fork());
        if (!pid)
            child(port, round);
        MUST(waitpid(pid, &status, 0));
        say("ended: %d %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        hear();
    }
}

static void *answering(void *unused)
{
    char bytes[2000] = "";
    (void)unused;
    while (send(stream, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
    return NULL;
}

static void server(int listener)
{
    static char bytes[20000];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        uint64_t total = 0;
        stream = accept_one(listener);
        ping_pong(stream, SERVER, 100);
        MUST(-pthread_create(&thread, NULL, answering, NULL));
        for (long got; (got = recv(stream, bytes, sizeof bytes, 0)) > 0; total += got)
            if (!intact(1, total, bytes, got))
                die("bytes");
        pthread_join(thread, NULL);
        close(stream);
        say_yes("an intact part", total > 0);
        tell();
    }
}

ROLES(server, client)
