/*
 * A parent and two children, which are in another PID namespace, use one stream: by turns, and all at once. The names
 * of threads and processes do not mean the same to all of them. One child leaves first, the other is the last. Where
 * such a namespace is not permitted, the program says so, and forks within its own namespace.
 */
#include "program.h"
#include <sched.h>

enum { ROUNDS = 12, WRITERS = 3, BYTES = 100000, MESSAGES = 4000 };

struct message {
    unsigned writer, number;
};

static int fd, turn_of[WRITERS][2], done[2];

/* Small messages, and many bytes each way. */
static void take_turn(enum side side, int turn)
{
    ping_pong(fd, side, 10);
    if (side == CLIENT)
        send_pattern(fd, turn, BYTES);
    if (recv_pattern(fd, turn, BYTES) != BYTES)
        die("recv_pattern");
    if (side == SERVER)
        send_pattern(fd, turn, BYTES);
}

/* What each of the three does until one of them leaves: its turns, then messages beside the others'. */
static void use(unsigned me)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        await_turn(turn_of[me][0]);
        take_turn(SERVER, round * WRITERS + me);
        pass_turn(turn_of[(me + 1) % WRITERS][1]);
    }
    await_turn(turn_of[me][0]);
    pass_turn(turn_of[(me + 1) % WRITERS][1]);
    for (unsigned i = 0; i < MESSAGES; i++)
        send_all(fd, &(struct message){me, i}, sizeof(struct message));
    pass_turn(done[1]);
}

static pid_t child(unsigned me)
{
    pid_t pid = MUST(fork());
    if (pid)
        return pid;
    watchdog();
    use(me);
    if (me == 1) { /* the first child is the last process */
        await_turn(turn_of[me][0]);
        sleep_ms(100);
        ping_pong(fd, SERVER, 200);
    }
    exit(0);
}

static void server(int stream)
{
    int status;
    fd = stream;
    for (int i = 0; i < WRITERS; i++)
        MUST(pipe(turn_of[i]));
    MUST(pipe(done));
    warm(fd, SERVER);
    say_result("unshare", unshare(CLONE_NEWPID));
    pid_t last = child(1), first = child(2);
    pass_turn(turn_of[0][1]);
    use(0);
    for (int i = 0; i < WRITERS; i++)
        await_turn(done[0]);
    await_turn(turn_of[0][0]);
    MUST(waitpid(first, &status, 0));
    say("first child: %d", status);
    ping_pong(fd, SERVER, 200);
    MUST(close(fd));
    pass_turn(turn_of[1][1]);
    MUST(waitpid(last, &status, 0));
    say("last child: %d", status);
}

static void client(int stream)
{
    unsigned next[WRITERS] = {0};
    char byte;
    fd = stream;
    warm(fd, CLIENT);
    for (int turn = 0; turn < ROUNDS * WRITERS; turn++)
        take_turn(CLIENT, turn);
    stage("all at once");
    for (int i = 0; i < WRITERS * MESSAGES; i++) {
        struct message message;
        if (recv_all(fd, &message, sizeof message) != sizeof message || message.writer >= WRITERS ||
            message.number != next[message.writer]++)
            die("a message of another place");
    }
    say("all messages came");
    ping_pong(fd, CLIENT, 200);
    ping_pong(fd, CLIENT, 200);
    say_result("at the end", recv(fd, &byte, 1, 0));
}

PAIR(server, client)
