/* In the manner of inetd: a child for each connection, which stands as its standard input and output, and another
 * program in the child's place; started by each of the exec calls. That program passes it on once more. */
#include "program.h"

enum { CALLS = 7, TURNS = 200 };

extern char **environ;

static void start(int call, const char *step, const char *number)
{
    char *words[] = {(char *)own_path, (char *)step, (char *)number, "3", "4", "5", "6", "7", NULL};
    switch (call) {
    case 0: execv(own_path, words); break;
    case 1: execve(own_path, words, environ); break;
    case 2: execvp(own_path, words); break;
    case 3: execvpe(own_path, words, environ); break;
    case 4: execl(own_path, own_path, step, number, "3", "4", "5", "6", "7", NULL); break;
    case 5: execlp(own_path, own_path, step, number, "3", "4", "5", "6", "7", NULL); break;
    case 6: execle(own_path, own_path, step, number, "3", "4", "5", "6", "7", NULL, environ); break;
    }
    _exit(1);
}

static void server(int listener)
{
    int status, failed = 0;
    for (int i = 0; i < CALLS; i++) {
        char number[16];
        int fd = accept_one(listener);
        sprintf(number, "%d", i);
        if (!MUST(fork())) {
            MUST(dup2(fd, 0));
            MUST(close(fd));
            MUST(close(listener));
            execl("/does/not/exist", "nothing", NULL); /* a failed exec changes nothing */
            start(i, "first", number);
        }
        close(fd);
    }
    for (int i = 0; i < CALLS; i++)
        failed += MUST(wait(&status)) > 0 && status;
    say("children failed: %d", failed);
}

static void client(int port)
{
    int fds[CALLS];
    for (int i = 0; i < CALLS; i++)
        fds[i] = connect_to(port);
    for (int i = 0; i < CALLS; i++) {
        char byte;
        ping_pong(fds[i], CLIENT, TURNS);
        say("end: %zd", recv(fds[i], &byte, 1, 0));
    }
}

int main(int argc, char **argv)
{
    if (argc == 8) {
        own_path = argv[0];
        watchdog();
        if (!strcmp(argv[1], "first"))
            start(atoi(argv[2]), "second", argv[2]);
        if (getenv("SIDEWIRE_INHERIT") || strcmp(argv[7], "7"))
            return 2;
        int fd = MUST(dup(0));
        MUST(dup2(MUST(open("/dev/null", O_RDONLY)), 0));
        ping_pong(fd, SERVER, TURNS);
        return 0;
    }
    return run_role(argc, argv, (struct roles){.server = server, .client = client});
}
