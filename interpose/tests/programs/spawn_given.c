/*
 * Children that are another program at once (posix_spawn, vfork and exec, system, popen) write to a stream that they
 * were given, in mid-stream; then their parent goes on with it.
 */
#include "program.h"
#include <spawn.h>

extern char **environ;

static void by_spawn(int fd)
{
    pid_t pid;
    char *arguments[] = {"sh", "-c", "printf 'by spawn'", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    MUST(-posix_spawn(&pid, "/bin/sh", &actions, NULL, arguments, environ));
    posix_spawn_file_actions_destroy(&actions);
    MUST(waitpid(pid, NULL, 0));
}

static void by_vfork(int fd)
{
    pid_t pid = vfork();
    if (!pid) {
        dup2(fd, 1);
        execl("/bin/sh", "sh", "-c", "printf 'by vfork'", NULL);
        _exit(1);
    }
    MUST(waitpid(pid, NULL, 0));
}

static void by_shell(int fd)
{
    char command[40];
    sprintf(command, "printf 'by shell' >&%d", fd);
    say("system: %d", system(command));
}

static void by_pipe(int fd)
{
    char command[40];
    sprintf(command, "printf 'by pipes' >&%d", fd);
    say("pclose: %d", pclose(popen(command, "r")));
}

static void (*const ways[])(int) = {by_spawn, by_vfork, by_shell, by_pipe};
enum { WAYS = sizeof ways / sizeof *ways, LENGTH = 8 };

static void server(int listener)
{
    for (int i = 0; i < WAYS; i++) {
        int fd = accept_one(listener);
        ping_pong(fd, SERVER, 500);
        MUST(fcntl(fd, F_SETFD, 0));
        ways[i](fd);
        ping_pong(fd, SERVER, 200);
        close(fd);
    }
}

static void client(int port)
{
    for (int i = 0; i < WAYS; i++) {
        char text[LENGTH + 1] = "";
        int fd = connect_to(port);
        ping_pong(fd, CLIENT, 500);
        recv_all(fd, text, LENGTH);
        say("%s", text);
        ping_pong(fd, CLIENT, 200);
        close(fd);
    }
}

ROLES(server, client)
