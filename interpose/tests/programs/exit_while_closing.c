/*
 * A process ends (exit_group) in one thread while others close, send or sleep on its streams; a wake-up may still be
 * under way to it. Its peer sees the end of each stream, or a reset where bytes were left unread.
 */
#include "program.h"

enum { ROUNDS = 24, STREAMS = 4 };

static int streams[STREAMS];

static void *close_all_streams(void *unused)
{
    (void)unused;
    for (int i = 0; i < STREAMS; i++)
        close(streams[i]);
    return NULL;
}

static void *sleep_on_one(void *unused)
{
    char byte;
    (void)unused;
    recv(streams[0], &byte, 1, MSG_PEEK);
    return NULL;
}

static void child(int port, int round)
{
    pthread_t thread;
    watchdog();
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = connect_to(port);
        ping_pong(streams[i], CLIENT, 100);
    }
    if (round % 3 == 0)
        pthread_create(&thread, NULL, close_all_streams, NULL);
    if (round % 3 == 1)
        pthread_create(&thread, NULL, sleep_on_one, NULL);
    if (round % 3 == 2) { /* the server sends, and is not read */
        pthread_create(&thread, NULL, sleep_on_one, NULL);
        for (int i = 0; i < STREAMS; i++)
            await_bytes(streams[i], 1);
    }
    if (round % 2)
        usleep(round * 5);
    tell();
    _exit(0);
}

static void client(int port)
{
    for (int round = 0; round < ROUNDS; round++) {
        int status = -1;
        pid_t pid = MUST(fork());
        if (!pid)
            child(port, round);
        MUST(waitpid(pid, &status, 0));
        if (status)
            say("round %d: status %d", round, status);
        hear();
    }
    say("all ended");
}

static void server(int listener)
{
    char byte;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = accept_one(listener);
            ping_pong(streams[i], SERVER, 100);
        }
        if (round % 3 == 2)
            for (int i = 0; i < STREAMS; i++)
                send_all(streams[i], "x", 1);
        hear();
        for (int i = 0; i < STREAMS; i++) {
            say_result(round % 3 == 2 ? "reset" : "end", recv(streams[i], &byte, 1, 0));
            close(streams[i]);
        }
        tell();
    }
}

ROLES(server, client)
