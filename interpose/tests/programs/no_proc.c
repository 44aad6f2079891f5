/* /proc is empty when the program starts (where it may be covered at all). */
#include "program.h"
#include <sched.h>
#include <sys/mount.h>

static void server(int fd)
{
    warm(fd, SERVER);
    say("works");
    meet();
}

static void client(int fd)
{
    warm(fd, CLIENT);
    say("works");
    meet();
}

/* The program covers /proc and starts itself again, so that a library too starts without it. */
int main(int argc, char **argv)
{
    if (!getenv("PROC_IS_COVERED")) {
        setenv("PROC_IS_COVERED", "1", 1);
        if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("none", "/proc", "tmpfs", 0, NULL) == 0)
            execv(argv[0], argv);
    }
    return run_role(argc, argv, (struct roles){.paired_server = server, .paired_client = client});
}
