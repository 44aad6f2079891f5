/* The client starts itself again with an empty environment, so without any preload: plain TCP, and no message. */
#include "program.h"

static void server(int listener)
{
    char byte;
    int fd = accept_warm(listener);
    say_result("at the end", recv(fd, &byte, 1, 0));
}

static void client(int port)
{
    char text[16];
    char *arguments[] = {(char *)own_path, "child", text, NULL};
    char *environment[] = {NULL};
    int status = 0;
    snprintf(text, sizeof text, "%d", port);
    pid_t child = MUST(fork());
    if (!child) {
        execve(own_path, arguments, environment);
        _exit(88);
    }
    MUST(waitpid(child, &status, 0));
    say("child: %d", status);
}

static int child(int port)
{
    watchdog();
    connect_warm(port);
    say("warm without an environment");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "child"))
        return child(atoi(argv[2]));
    return run_role(argc, argv, (struct roles){.server = server, .client = client});
}
