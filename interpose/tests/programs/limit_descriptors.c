/*
 * Both ends have few descriptors and use nearly all of them. A stream that is there goes on, one that is made with a
 * single number left works, and the program gets (nearly) as many files as the limit says.
 */
#include "program.h"

enum { LIMIT = 48 };

static int files[LIMIT], count;

/* Takes every number that is left. */
static void fill_files(void)
{
    while (count < LIMIT && (files[count] = open("/dev/zero", O_RDONLY)) >= 0)
        count++;
}

static void either(int fd, enum side side, int other)
{
    struct rlimit limit = {LIMIT, LIMIT};
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    warm(fd, side);
    fill_files();
    say_result("one file more", open("/dev/zero", O_RDONLY));
    /* The library may hold a few, the program must get most. */
    say_yes("at least 24 files", count >= 24);
    warm(fd, side);
    meet();
    close(files[--count]);
    if (side == SERVER) {
        int accepted = accept_one(other);
        fill_files(); /* the library may have given back a number meanwhile */
        set_nonblocking(other);
        say_result("accept, none left", accept(other, NULL, NULL));
        ping_pong(accepted, SERVER, 200);
        meet();
        close(accepted);
    } else {
        int made = connect_to(other);
        fill_files();
        ping_pong(made, CLIENT, 200);
        meet();
        say_result("socket, none left", socket(AF_INET, SOCK_STREAM, 0));
        close(made);
    }
    while (count > 0)
        MUST(close(files[--count]));
    warm(fd, side);
    meet();
}

static void server(int listener)
{
    either(accept_one(listener), SERVER, listener);
}

static void client(int port) { either(connect_to(port), CLIENT, port); }

ROLES(server, client)
