/*
 * No locked memory, no files larger than a page (a memfd that is made larger would be a SIGXFSZ) and no address space
 * to spare: the stream works, whatever it can be.
 */
#include "program.h"

static void limit_to(int what, rlim_t size)
{
    struct rlimit limit = {size, size};
    MUST(setrlimit(what, &limit));
}

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1 || fclose(file))
        die("statm");
    return (rlim_t)pages * sysconf(_SC_PAGESIZE);
}

static void either(int listener, int port)
{
    for (int round = 0; round < 3; round++) {
        stage(round == 0 ? "RLIMIT_MEMLOCK" : round == 1 ? "RLIMIT_FSIZE" : "RLIMIT_AS");
        if (round == 0)
            limit_to(RLIMIT_MEMLOCK, 0);
        else if (round == 1)
            limit_to(RLIMIT_FSIZE, 4096);
        else
            limit_to(RLIMIT_AS, address_space() + (256 << 10));
        int fd = listener >= 0 ? accept_one(listener) : connect_to(port);
        warm(fd, listener >= 0 ? SERVER : CLIENT);
        say("%s: works", stage_now);
        meet();
        close(fd);
    }
}

static void server(int listener) { either(listener, 0); }
static void client(int port) { either(-1, port); }
ROLES(server, client)
