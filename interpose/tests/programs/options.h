/* Options by name: set, read back, and bytes that still arrive. */
#include "program.h"

struct option {
    int level, number;
    const char *name;
    long value;
    int size;  /* of the value; 0: nothing is set */
    int quiet; /* what is read back is not certain */
};

FN void say_option(const char *when, int fd, const struct option *o)
{
    char line[200];
    unsigned value[64] = {0};
    socklen_t length = sizeof value;
    int result = getsockopt(fd, o->level, o->number, value, &length);
    if (o->quiet && !result)
        snprintf(line, sizeof line, "%s %s: read", o->name, when);
    else if (!result)
        snprintf(line, sizeof line, "%s %s: %x, %d bytes", o->name, when, value[0], length);
    else
        snprintf(line, sizeof line, "%s %s: %s", o->name, when, strerrorname_np(errno) ?: "?");
    say("%s", line);
}

FN int set_option(int fd, const struct option *o, long value)
{
    long whole[8] = {value}; /* a struct's first member, and zeros */
    return setsockopt(fd, o->level, o->number, whole, o->size);
}

FN void try_option(int fd, enum side side, const struct option *o)
{
    stage(o->name);
    say_option("before", fd, o);
    ping_pong(fd, side, 10);
    if (o->size) {
        say_result(o->name, set_option(fd, o, o->value));
        say_option("set", fd, o);
    }
    ping_pong(fd, side, 20);
    meet();
    say_option("after", fd, o);
}
