/*
 * fclose closes a descriptor unseen; its number comes back as a file, a pipe and a stream that is not stdio's. What
 * was remembered of the number must not be applied to them.
 */
#include "program.h"

static void server(int listener)
{
    char byte;
    for (int i = 0; i < 2; i++) {
        int fd = accept_warm(listener);
        say_result("at the end", recv(fd, &byte, 1, 0));
        close(fd);
    }
}

static void client(int port)
{
    char bytes[64];
    int ends[2];
    int fd = connect_warm(port);
    FILE *file = fdopen(fd, "r+");
    say_result("fclose", fclose(file));

    int number = MUST(open("/dev/zero", O_RDONLY));
    say_yes("the same number", number == fd);
    say_result("read", read(number, bytes, sizeof bytes));
    say_result("recv", recv(number, bytes, sizeof bytes, 0));
    fclose(fdopen(number, "r"));

    MUST(pipe(ends));
    say_yes("the same number", ends[0] == fd);
    say_result("write", write(ends[1], bytes, sizeof bytes));
    say_poll("poll", ends[0], POLLIN, 0);
    say_result("read", read(ends[0], bytes, sizeof bytes));
    fclose(fdopen(ends[0], "r"));

    int again = connect_to(port);
    say_yes("the same number", again == fd);
    warm(again, CLIENT);
    say_result("close", close(again));
    close(ends[1]);
}

ROLES(server, client)
