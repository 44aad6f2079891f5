/* A server forks a child that saves, and holds copies of all streams for a while, as the streams go on in the parent. */
#include "program.h"

enum { STREAMS = 4, SAVES = 3 };

static void server(int listener)
{
    int streams[STREAMS], status;
    char byte;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = accept_one(listener);
        ping_pong(streams[i], SERVER, 100);
    }
    for (int save = 0; save < SAVES; save++) {
        pid_t pid = MUST(fork());
        if (!pid) {
            watchdog();
            close(listener);
            sleep_ms(100);
            _exit(save);
        }
        for (int i = 0; i < STREAMS; i++)
            ping_pong(streams[i], SERVER, 200);
        if (save == SAVES - 1) { /* closed while the child still has it: no end yet */
            close(streams[0]);
            tell();
        }
        MUST(waitpid(pid, &status, 0));
        say("saved: %d", WEXITSTATUS(status));
    }
    for (int i = 1; i < STREAMS; i++)
        say_result("at the end", recv(streams[i], &byte, 1, 0));
}

static void client(int port)
{
    int streams[STREAMS];
    char byte;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = connect_to(port);
        ping_pong(streams[i], CLIENT, 100);
    }
    for (int save = 0; save < SAVES; save++)
        for (int i = 0; i < STREAMS; i++)
            ping_pong(streams[i], CLIENT, 200);
    hear();
    say_result("closed by parent, then by child", recv(streams[0], &byte, 1, 0));
    for (int i = 0; i < STREAMS; i++)
        close(streams[i]);
}

ROLES(server, client)
