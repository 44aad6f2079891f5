/*
 * One end of a busy stream is killed by SIGKILL at any moment: while the stream is moved, in the middle of a send, of
 * a receive, of a wait. The other end reads what came, which is intact, then the end or a reset; its sends end in an
 * error; and its other streams go on. Half of the dead are not waited for before that, so that they are zombies.
 */
#include "program.h"

enum { ROUNDS = 240, LARGEST = 100000, TO_PEER = 1, TO_SURVIVOR = 2 };

struct end {
    int fd;
    unsigned out, in; /* the streams' seeds */
    uint64_t sent, received, random;
    char outgoing[LARGEST], incoming[LARGEST];
};

/* Mostly small messages, some that need several pieces. */
static size_t some_size(uint64_t *random)
{
    static const unsigned limits[] = {64, 64, 1000, 9000, LARGEST};
    return 1 + next_random(random, limits[next_random(random, 5)]);
}

static int is_end(int error) { return error == ECONNRESET || error == EPIPE; }

/* Sends once; 0 at the end of the stream. */
static int push(struct end *end, uint64_t *random)
{
    size_t size = some_size(random);
    fill(end->out, end->sent, end->outgoing, size);
    long sent = send(end->fd, end->outgoing, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        return is_end(errno) ? 0 : (die("send"), 0);
    end->sent += sent > 0 ? sent : 0;
    return 1;
}

/* Receives once; 0 at the end of the stream. */
static int pull(struct end *end, uint64_t *random)
{
    long got = recv(end->fd, end->incoming, some_size(random), 0);
    if (got < 0 && errno != EAGAIN)
        return is_end(errno) ? 0 : (die("recv"), 0);
    if (got > 0 && !intact(end->in, end->received, end->incoming, got))
        exit(94);
    end->received += got > 0 ? got : 0;
    return got != 0;
}

static void *push_on(void *end)
{
    uint64_t random = ((struct end *)end)->random + 1;
    while (push(end, &random))
        ;
    return NULL;
}

/* Blocking, one thread for each direction. */
static void by_threads(struct end *end)
{
    pthread_t sender;
    MUST(-pthread_create(&sender, NULL, push_on, end));
    stage("a blocking receive");
    while (pull(end, &end->random))
        ;
    stage("a blocking send");
    pthread_join(sender, NULL);
}

static void by_poll(struct end *end)
{
    struct pollfd entry = {.fd = end->fd, .events = POLLIN | POLLOUT};
    stage("poll");
    set_nonblocking(end->fd);
    for (int open = 1; open;) {
        MUST(poll(&entry, 1, -1));
        if (entry.revents & ~POLLOUT)
            open = pull(end, &end->random);
        if (entry.revents & POLLOUT)
            push(end, &end->random); /* its error is no reason not to read on */
    }
}

static void by_epoll(struct end *end)
{
    int set = MUST(epoll_create1(0));
    struct epoll_event event;
    stage("epoll_wait");
    set_nonblocking(end->fd);
    epoll_add(set, end->fd, EPOLLIN | EPOLLOUT);
    for (int open = 1; open;) {
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.events & ~EPOLLOUT)
            open = pull(end, &end->random);
        if (event.events & EPOLLOUT)
            push(end, &end->random);
    }
    close(set);
}

/* Goes on until the stream ends. */
static void be_busy(int fd, unsigned out, unsigned in, int round)
{
    static void (*const manners[])(struct end *) = {by_threads, by_poll, by_epoll};
    static struct end end;
    end = (struct end){.fd = fd, .out = out, .in = in, .random = round * 2 + out};
    /* Each manner meets each at the other end. */
    manners[(out == TO_PEER ? round : round / 3) % 3](&end);
}

static void peer(int port, int round, int ready)
{
    watchdog();
    int fd = connect_to(port);
    if (round & 1)
        ping_pong(fd, CLIENT, 60);
    pass_turn(ready);
    be_busy(fd, TO_SURVIVOR, TO_PEER, round);
}

static void client(int port)
{
    int other = connect_warm(port), ready[2], status;
    uint64_t random = getpid() * 1000003ull + now_ms();
    MUST(pipe(ready));
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid = MUST(fork());
        if (!pid) {
            close(other);
            peer(port, round, ready[1]);
            exit(0);
        }
        await_turn(ready[0]);
        usleep(next_random(&random, 3000));
        MUST(kill(pid, SIGKILL));
        if (round & 2)
            MUST(waitpid(pid, &status, 0));
        ping_pong(other, CLIENT, 5);
        hear(); /* the survivor has seen it */
        if (!(round & 2))
            MUST(waitpid(pid, &status, 0));
    }
    ping_pong(other, CLIENT, 400);
    say("killed: %d", ROUNDS);
}

static void server(int listener)
{
    int other = accept_warm(listener);
    for (int round = 0; round < ROUNDS; round++) {
        int fd = accept_one(listener);
        if (round & 1)
            ping_pong(fd, SERVER, 60);
        be_busy(fd, TO_PEER, TO_SURVIVOR, round);
        close(fd);
        stage("the other stream");
        ping_pong(other, SERVER, 5);
        tell();
    }
    ping_pong(other, SERVER, 400);
    say("survived: %d", ROUNDS);
}

ROLES(server, client)
