/* A signal while accept is blocked: EINTR without SA_RESTART, with it accept goes on. */
#include "pester.h"

static void server(int listener)
{
    handle(SIGUSR1, 0);
    INTERRUPTED("accept", accept(listener, NULL, NULL));
    handle(SIGUSR1, SA_RESTART);
    stage("accept, restarted");
    pester_start(SIGUSR1, FIVE, tell);
    int fd = accept(listener, NULL, NULL);
    pester_stop();
    say_yes("accept, restarted", fd >= 0);
    say_yes("  handler ran", handled > 0);
    warm(fd, SERVER);
    meet();
}

static void client(int port)
{
    hear();
    connect_warm(port);
    say("warm");
    meet();
}

ROLES(server, client)
