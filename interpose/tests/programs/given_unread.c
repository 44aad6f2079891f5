/*
 * A stream with much unread goes to a reader that knows of no library: by exec, by SCM_RIGHTS, or to stdio. The sender
 * meanwhile sleeps in every manner, computes, or goes on sending. Every byte comes once, in order.
 */
#include "program.h"
#include "passing.h"

enum { UNREAD = 300000, LATER = 2000000, TAKEN = 12345 };

static const char *senders[] = {"recv", "poll", "select", "epoll", "computes", "sends", "nonblocking"};
static const char *readers[] = {"exec", "passed", "stdio"};
enum { SENDERS = sizeof senders / sizeof *senders, READERS = sizeof readers / sizeof *readers };

/* ---- the reader, with whatever number it has got ---- */

static int reads_rest(int fd, int more)
{
    char *bytes = malloc(UNREAD + LATER);
    size_t want = UNREAD - TAKEN + (more ? LATER : 0);
    watchdog();
    stage("reads the rest");
    size_t got = recv_all(fd, bytes, want);
    int good = got == want && intact(5, TAKEN, bytes, got);
    if (!good)
        fprintf(stderr, "%zu of %zu bytes\n", got, want);
    stage("answers");
    if (send(fd, "!", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
        good = 0;
    stage("reads the end");
    if (recv(fd, bytes, 1, 0) > 0)
        good = 0;
    return good ? 0 : 1;
}

static void run_reader(int number, int more, int passed)
{
    char text[16];
    char *arguments[] = {(char *)own_path, passed ? "passed" : "given", text, more ? "more" : "all", NULL};
    char *environment[] = {NULL};
    sprintf(text, "%d", number);
    execve(own_path, arguments, environment);
    _exit(88);
}

static void exec_reader(int fd, int more)
{
    pid_t child = MUST(fork());
    if (!child)
        run_reader(fd, more, 0);
    close(fd);
    int status;
    MUST(waitpid(child, &status, 0));
    say("reader: %d", status);
}

static void passed_reader(int fd, int more)
{
    int ends[2], status;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    pid_t child = MUST(fork());
    if (!child) {
        MUST(fcntl(ends[1], F_SETFD, 0));
        run_reader(ends[1], more, 1);
    }
    pass(ends[0], fd);
    close(fd);
    MUST(waitpid(child, &status, 0));
    say("reader: %d", status);
}

static void stdio_reader(int fd, int more)
{
    char *bytes = malloc(UNREAD + LATER);
    size_t want = UNREAD - TAKEN + (more ? LATER : 0);
    FILE *file = fdopen(fd, "r");
    size_t got = fread(bytes, 1, want, file);
    say("reader: %d", !(got == want && intact(5, TAKEN, bytes, got)));
    (void)!send(fd, "!", 1, MSG_NOSIGNAL);
    if (fread(bytes, 1, 1, file))
        say("more than there was");
    fclose(file);
    free(bytes);
}

static void server(int listener)
{
    static char bytes[UNREAD];
    for (int r = 0; r < READERS; r++)
        for (int s = 0; s < SENDERS; s++) {
            int more = s == 5 || s == 6;
            say("%s, the sender %s", readers[r], senders[s]);
            stage(senders[s]);
            int fd = accept_one(listener);
            warm(fd, SERVER);
            await_bytes(fd, 100000);
            if (recv_all(fd, bytes, TAKEN) != TAKEN || !intact(5, 0, bytes, TAKEN))
                die("first bytes");
            meet();
            sleep_ms(5);
            if (r == 0)
                exec_reader(fd, more);
            else if (r == 1)
                passed_reader(fd, more);
            else
                stdio_reader(fd, more);
            meet();
        }
}

/* ---- the sender ---- */

static void send_rest(int fd, int nonblocking)
{
    char *bytes = malloc(LATER);
    fill(5, UNREAD, bytes, LATER);
    if (nonblocking)
        set_nonblocking(fd);
    for (size_t done = 0; done < LATER;) {
        size_t size = LATER - done < 30000 ? LATER - done : 30000;
        long sent = send(fd, bytes + done, size, MSG_NOSIGNAL);
        if (sent < 0 && nonblocking && errno == EAGAIN) {
            struct pollfd entry = {.fd = fd, .events = POLLOUT};
            MUST(poll(&entry, 1, -1));
            continue;
        }
        if (sent < 0)
            die("send");
        done += sent;
    }
    set_blocking(fd);
    free(bytes);
}

static void wait_for_answer(int fd, int how)
{
    fd_set set;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    FD_ZERO(&set);
    FD_SET(fd, &set);
    if (how == 1)
        MUST(poll(&entry, 1, -1));
    if (how == 2)
        MUST(select(fd + 1, &set, NULL, NULL, NULL));
    if (how == 3) {
        int ep = MUST(epoll_create1(EPOLL_CLOEXEC));
        MUST(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
        MUST(epoll_wait(ep, &event, 1, -1));
        close(ep);
    }
    if (how == 4) {
        long end = now_ms() + 50;
        while (now_ms() < end)
            ;
    }
}

static void client(int port)
{
    for (int r = 0; r < READERS; r++)
        for (int s = 0; s < SENDERS; s++) {
            char byte;
            stage(senders[s]);
            int fd = connect_to(port);
            warm(fd, CLIENT);
            send_pattern(fd, 5, UNREAD);
            meet();
            if (s == 5 || s == 6)
                send_rest(fd, s == 6);
            wait_for_answer(fd, s);
            say_result("answer", recv(fd, &byte, 1, 0));
            MUST(shutdown(fd, SHUT_WR));
            MUST(close(fd));
            meet();
        }
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "given"))
        return reads_rest(atoi(argv[2]), !strcmp(argv[3], "more"));
    if (argc == 4 && !strcmp(argv[1], "passed")) {
        watchdog();
        stage("is passed a stream");
        return reads_rest(take_passed(atoi(argv[2])), !strcmp(argv[3], "more"));
    }
    return run_role(argc, argv, (struct roles){.server = server, .client = client});
}
