/*
 * stdio on a stream that has been moving already: fprintf and fgets use calls inside libc that no library sees. Then
 * fclose, and the descriptor number is used again at once, for another stream.
 */
#include "program.h"

static void server(int listener)
{
    char line[200];
    for (int round = 0; round < 3; round++) {
        int fd = accept_one(listener);
        if (round)
            warm(fd, SERVER); /* in the first round stdio is there from the beginning */
        FILE *file = fdopen(fd, "r+");
        for (int i = 0; i < 50; i++) {
            if (!fgets(line, sizeof line, file))
                die("fgets");
            fprintf(file, "%d: %s", i, line);
            fflush(file);
        }
        say("last line: %.*s", (int)strcspn(line, "\n"), line);
        say_yes("dprintf", fgets(line, sizeof line, file) && !strcmp(line, "by descriptor\n"));
        say_yes("end", !fgets(line, sizeof line, file));
        say_result("fclose", fclose(file));
        say_result("recv, closed", recv(fd, line, 1, 0));
    }
}

static void client(int port)
{
    char line[200];
    int first = -1;
    for (int round = 0; round < 3; round++) {
        int fd = connect_to(port);
        if (first < 0)
            first = fd;
        say_yes("the same number", fd == first);
        if (round)
            warm(fd, CLIENT);
        FILE *file = fdopen(fd, "r+");
        for (int i = 0; i < 50; i++) {
            fprintf(file, "message %d of %d\n", i, round);
            fflush(file);
            if (!fgets(line, sizeof line, file))
                die("fgets");
        }
        say("last line: %.*s", (int)strcspn(line, "\n"), line);
        dprintf(fd, "by descriptor\n"); /* another one that writes inside libc */
        say_result("fclose", fclose(file));
    }
}

ROLES(server, client)
