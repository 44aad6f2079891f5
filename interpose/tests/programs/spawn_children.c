/*
 * vfork, posix_spawn, system and popen while a stream is open: their children close and duplicate descriptors, in
 * memory that is the parent's, and the parent's stream lives on.
 */
#include "program.h"
#include <spawn.h>

extern char **environ;

static void report(const char *what, pid_t pid)
{
    int status = -1;
    MUST(waitpid(pid, &status, 0));
    say("%s: %d", what, status);
}

static void by_vfork(int fd)
{
    pid_t pid = vfork();
    if (!pid) { /* as Python's subprocess does it */
        dup2(fd, 50);
        close(50);
        close(fd);
        for (int other = 3; other < 60; other++)
            close(other);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    report("vfork", pid);
}

static void by_spawn(int fd)
{
    pid_t pid;
    char *arguments[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 50);
    posix_spawn_file_actions_addclose(&actions, fd);
    posix_spawn_file_actions_addopen(&actions, 60, "/dev/null", O_RDONLY, 0);
    MUST(-posix_spawn(&pid, "/bin/true", &actions, NULL, arguments, environ));
    posix_spawn_file_actions_destroy(&actions);
    report("posix_spawn", pid);
}

static void by_shell(void)
{
    char line[20] = "";
    say("system: %d", system("exit 3"));
    FILE *pipe = popen("echo hello", "r");
    say_yes("popen", pipe && fgets(line, sizeof line, pipe) && !strcmp(line, "hello\n"));
    say("pclose: %d", pclose(pipe));
}

static void either(int fd, enum side side)
{
    warm(fd, side);
    for (int i = 0; i < 3; i++) {
        by_vfork(fd);
        ping_pong(fd, side, 100);
        by_spawn(fd);
        ping_pong(fd, side, 100);
        by_shell();
        ping_pong(fd, side, 100);
    }
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
