/*
 * A stream is passed by SCM_RIGHTS, in mid-stream and with bytes queued, to a process that was started separately.
 * The sender keeps it for a while, then closes it.
 */
#include "program.h"
#include "passing.h"

/* Started before there was a stream; serves what it is passed. */
static int helper(int by)
{
    char bytes[100];
    watchdog();
    stage("helper");
    int fd = take_passed(by);
    await_bytes(fd, 100);
    if (recv_all(fd, bytes, 100) != 100 || !intact(9, 0, bytes, 100))
        die("queued");
    warm(fd, SERVER);
    MUST(write(by, "", 1));
    say_result("helper, at the end", recv(fd, bytes, 1, 0));
    return 0;
}

static void server(int listener)
{
    int ends[2], status;
    char number[16], byte;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    sprintf(number, "%d", ends[1]);
    pid_t pid = MUST(fork());
    if (!pid) {
        execl(own_path, own_path, "helper", number, NULL);
        _exit(88);
    }
    close(ends[1]);
    int fd = accept_one(listener);
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 100);
    pass(ends[0], fd);
    MUST(read(ends[0], &byte, 1));
    MUST(close(fd));
    meet();
    MUST(waitpid(pid, &status, 0));
    say("helper: %d", status);
}

static void client(int port)
{
    char bytes[100];
    int fd = connect_to(port);
    warm(fd, CLIENT);
    meet();
    fill(9, 0, bytes, sizeof bytes);
    send_all(fd, bytes, sizeof bytes);
    warm(fd, CLIENT);
    meet();
    say_poll("not at the end", fd, POLLIN | POLLRDHUP, 50);
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "helper"))
        return helper(atoi(argv[2]));
    return run_role(argc, argv, (struct roles){.server = server, .client = client});
}
