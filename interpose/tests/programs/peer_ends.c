/*
 * The peer's process ends: by SIGKILL, _exit, exit, abort; having read everything, or not; with bytes of its own
 * still unread here. A reader gets those bytes, then the end or a reset.
 */
#include "program.h"

enum { WAYS = 4, STATES = 4, BULK = 40000 };

static const char *way_names[] = {"SIGKILL", "_exit", "exit", "abort"};
static const char *state_names[] = {"all read", "bytes of ours unread", "bytes of its own unread", "both unread"};

/* What the process does that is going to end: 1 has left bytes unread, 2 has sent bytes, 3 both. */
static void child(int port, int way, int state)
{
    watchdog();
    int fd = connect_warm(port);
    if (state & 2)
        send_pattern(fd, 1, BULK);
    if (state & 1)
        await_bytes(fd, 10);
    hear(); /* all of it has arrived */
    if (way == 0)
        raise(SIGKILL);
    if (way == 1)
        _exit(0);
    if (way == 2)
        exit(0);
    abort();
}

static void client(int port)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (int i = 0; i < WAYS * STATES; i++) {
        int status;
        pid_t pid = MUST(fork());
        if (!pid)
            child(port, i / STATES, i % STATES);
        MUST(waitpid(pid, &status, 0));
        tell(); /* it is gone */
    }
    hear();
}

static void server(int listener)
{
    char bytes[20] = "";
    for (int i = 0; i < WAYS * STATES; i++) {
        int fd = accept_one(listener);
        say("-- %s, %s", way_names[i / STATES], state_names[i % STATES]);
        warm(fd, SERVER);
        if (i % STATES & 1)
            send_all(fd, bytes, 10);
        if (i % STATES & 2)
            await_bytes(fd, BULK);
        tell();
        hear();
        await_poll(fd, i % STATES & 1 ? POLLHUP : POLLRDHUP);
        say_poll("poll", fd, POLLIN | POLLOUT | POLLRDHUP, 0);
        if (i % STATES & 2) {
            size_t got = 0;
            for (long part; got < BULK && (part = recv(fd, bytes, sizeof bytes, 0)) > 0; got += part)
                if (!intact(1, got, bytes, part))
                    die("bytes");
            say("received: %zu", got);
        }
        say_result("recv", recv(fd, bytes, sizeof bytes, 0));
        say_result("recv", recv(fd, bytes, sizeof bytes, 0));
        say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));
        if (!(i % STATES & 1))
            await_poll(fd, POLLHUP);
        say_result("send", send(fd, bytes, 1, MSG_NOSIGNAL));
        say_result("recv", recv(fd, bytes, sizeof bytes, 0));
        close(fd);
    }
    tell();
}

ROLES(server, client)
