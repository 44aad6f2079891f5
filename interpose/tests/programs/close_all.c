/*
 * A program closes every descriptor that it does not know: by walking /proc/self/fd, by a loop over all numbers, with
 * close_range. Its stream goes on, and files that get the freed numbers see no byte of anybody else's.
 */
#include "program.h"
#include <dirent.h>

static int keep[8], keeping;

static int kept(int fd)
{
    for (int i = 0; i < keeping; i++)
        if (fd == keep[i])
            return 1;
    return fd <= 2;
}

static void close_by_walking(void)
{
    int found[1024], count = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        die("opendir");
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.' && count < 1024 && atoi(entry->d_name) != dirfd(directory))
            found[count++] = atoi(entry->d_name);
    closedir(directory);
    for (int i = 0; i < count; i++)
        if (!kept(found[i]))
            close(found[i]);
}

static void close_by_loop(void)
{
    for (int fd = 3; fd < 4096; fd++)
        if (!kept(fd))
            close(fd);
}

static void close_by_range(void)
{
    int from = 3;
    for (; from < 4096; from++) {
        int until = from;
        while (until < 4096 && !kept(until))
            until++;
        if (until > from)
            close_range(from, until < 4096 ? (unsigned)until - 1 : ~0u, 0);
        from = until;
    }
}

/* Pipes and files on all low numbers: nobody else may write to them or take from them. */
static void use_numbers(int fd, enum side side)
{
    int pipes[40][2], clean = 1;
    char bytes[8];
    for (int i = 0; i < 40; i++)
        MUST(pipe2(pipes[i], O_NONBLOCK));
    for (int i = 0; i < 40; i++)
        MUST(write(pipes[i][1], "mine", 4));
    warm(fd, side);
    for (int i = 0; i < 40; i++) {
        clean = clean && read(pipes[i][0], bytes, sizeof bytes) == 4 && !memcmp(bytes, "mine", 4);
        clean = clean && close(pipes[i][0]) == 0 && close(pipes[i][1]) == 0;
    }
    say_yes("only my own bytes", clean);
}

static void either(int fd, enum side side)
{
    void (*ways[])(void) = {close_by_walking, close_by_loop, close_by_range};
    keep[keeping++] = fd;
    keep[keeping++] = turns;
    for (int i = 0; i < 3; i++) {
        stage(i == 0 ? "walk" : i == 1 ? "loop" : "range");
        warm(fd, side);
        meet();
        ways[i]();
        meet();
        use_numbers(fd, side);
        meet();
    }
    say("went on");
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
