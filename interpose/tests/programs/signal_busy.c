/*
 * Signals in a stream that never rests, so that they meet every instant of a call. A handler with SA_RESTART is never
 * seen; one without shows as EINTR at most, and not a byte is lost. The handler itself uses the stream.
 */
#include "pester.h"

static int stream;
static volatile sig_atomic_t peeks;

/* A handler that calls into the stream that it has interrupted. */
static void peek_in_handler(int signal_number)
{
    int error = errno;
    char byte;
    (void)signal_number;
    handled++;
    if (recv(stream, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
        peeks++;
    send(stream, "", 0, MSG_DONTWAIT);
    errno = error;
}

/* Round trips of one byte that take EINTR for an answer; how many there were. */
static int rounds(int fd, int until)
{
    int interrupted = 0;
    for (int i = 0; i < until; i++) {
        unsigned char byte = i, answer;
        long result;
        while ((result = send(fd, &byte, 1, 0)) < 0 && errno == EINTR)
            interrupted++;
        MUST(result);
        while ((result = recv(fd, &answer, 1, 0)) < 0 && errno == EINTR)
            interrupted++;
        if (result != 1 || answer != byte)
            die("round trip");
    }
    return interrupted;
}

static void *storm(void *target)
{
    for (int i = 0; !__atomic_load_n(&pester.stop, __ATOMIC_ACQUIRE); i++) {
        pthread_kill(*(pthread_t *)target, SIGUSR1);
        usleep(i % 400);
    }
    return NULL;
}

static int in_a_storm(int fd, int until)
{
    pthread_t self = pthread_self(), thread;
    pester.stop = 0;
    handled = 0;
    MUST(-pthread_create(&thread, NULL, storm, &self));
    int interrupted = rounds(fd, until);
    __atomic_store_n(&pester.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    return interrupted;
}

static void client(int fd)
{
    struct sigaction peeking = {.sa_handler = peek_in_handler, .sa_flags = SA_RESTART};
    stream = fd;
    warm(fd, CLIENT);
    stage("SA_RESTART");
    handle(SIGUSR1, SA_RESTART);
    int interrupted = in_a_storm(fd, 8000);
    say("with SA_RESTART: %d times EINTR", interrupted);
    say_yes("handler ran", handled > 0);
    stage("no SA_RESTART");
    handle(SIGUSR1, 0);
    in_a_storm(fd, 8000);
    say_yes("handler ran", handled > 0);
    stage("handler that uses the stream");
    MUST(sigaction(SIGUSR1, &peeking, NULL));
    say("with a busy handler: %d times EINTR", in_a_storm(fd, 8000));
    say_yes("handler ran", handled > 0);
}

static void server(int fd)
{
    char bytes[64];
    size_t total = 0;
    warm(fd, SERVER);
    for (long got; (got = recv(fd, bytes, sizeof bytes, 0)) > 0; total += got)
        send_all(fd, bytes, got);
    say("echoed: %zu", total);
}

PAIR(server, client)
