/*
 * Parent and child use one stream in turn, after a fork in mid-stream; each may leave first, and the peer sees the end
 * only when both have.
 */
#include "program.h"

static void server(int fd)
{
    int to_child[2], to_parent[2], status;
    MUST(pipe(to_child));
    MUST(pipe(to_parent));
    for (int round = 0; round < 4; round++) {
        ping_pong(fd, SERVER, 200);
        pid_t pid = MUST(fork());
        if (!pid) {
            watchdog();
            for (int i = 0; i < 20; i++) {
                await_turn(to_child[0]);
                ping_pong(fd, SERVER, 10);
                pass_turn(to_parent[1]);
            }
            if (round == 3) { /* the child is the last */
                await_turn(to_child[0]);
                sleep_ms(100);
                ping_pong(fd, SERVER, 200);
            }
            exit(0);
        }
        for (int i = 0; i < 20; i++) {
            ping_pong(fd, SERVER, 10);
            pass_turn(to_child[1]);
            await_turn(to_parent[0]);
        }
        if (round < 3) {
            MUST(waitpid(pid, &status, 0));
            say("child: %d", status);
        }
    }
    pass_turn(to_child[1]);
    MUST(close(fd));
    say("left");
    MUST(wait(&status));
    say("child: %d", status);
}

static void client(int fd)
{
    char byte;
    ping_pong(fd, CLIENT, 200);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 40; i++)
            ping_pong(fd, CLIENT, 10);
        ping_pong(fd, CLIENT, 200);
    }
    say_result("at the end", recv(fd, &byte, 1, 0));
}

PAIR(server, client)
