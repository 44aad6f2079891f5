/*
 * Two processes share one end of a stream, both sending or both receiving, and one of them is killed by SIGKILL at any
 * moment. The other goes on with the same peer: its messages arrive whole and in order, what the dead one left in
 * parts is passed over, and nobody hangs.
 *
 * What the two send carries in bit 7 of each byte whose it is.
 */
#include "numbered.h"
#include <sys/mman.h>
#include <sys/prctl.h>

enum { ROUNDS = 96, SIZE = 600, LOCKED = 0, UNLOCKED = 1, RECEIVING = 2, KINDS = 3 };

/* What the processes that share the end have in common, besides the stream. */
static struct shared {
    pthread_mutex_t lock; /* robust: a death gives it on */
    pid_t pids[2];
    int ready, dead;
    uint32_t next; /* the number of the message that is read next */
} *shared;

static unsigned char text_at(int writer, uint64_t offset) { return byte_at(writer, offset) & 0x7f; }

/* ---- the end that two processes share ---- */

/* 1 if the other one died with the lock. */
static int enter(void)
{
    int error = pthread_mutex_lock(&shared->lock);
    if (error == EOWNERDEAD)
        pthread_mutex_consistent(&shared->lock);
    else if (error)
        die("lock");
    return error == EOWNERDEAD;
}

static void leave(void) { pthread_mutex_unlock(&shared->lock); }

static int other_is_dead(void) { return __atomic_load_n(&shared->dead, __ATOMIC_ACQUIRE); }

/* Until some messages after the other one's death; then the peer says how many bytes it had of each. */
static void send_messages(int fd, int me, int kind)
{
    unsigned char message[SIZE];
    uint64_t sent = 0, counts[2];
    for (int left = AFTERWARDS; left; sent += SIZE) {
        for (int i = 0; i < SIZE; i++)
            message[i] = text_at(me, sent + i) | me << 7;
        left -= other_is_dead();
        if (kind == LOCKED)
            enter();
        send_all(fd, message, SIZE);
        if (kind == LOCKED)
            leave();
    }
    MUST(shutdown(fd, SHUT_WR));
    if (recv_all(fd, counts, sizeof counts) != sizeof counts || counts[me] != sent)
        die("the survivor's bytes");
}

static void receive_messages(int fd)
{
    for (int more = 1; more;) {
        int resume = enter();
        more = receive_numbered(fd, resume, &shared->next);
        leave();
    }
}

static void share(int port, int kind)
{
    watchdog();
    int fd = connect_to(port), other;
    ping_pong(fd, CLIENT, 60);
    other = !MUST(fork());
    watchdog();
    shared->pids[other] = getpid();
    __atomic_add_fetch(&shared->ready, 1, __ATOMIC_ACQ_REL);
    stage(kind == RECEIVING ? "receive" : "send");
    if (kind == RECEIVING)
        receive_messages(fd);
    else
        send_messages(fd, other, kind);
    exit(0);
}

static void client(int port)
{
    uint64_t random = getpid() * 1000003ull + now_ms();
    int other = connect_warm(port), status;
    pthread_mutexattr_t robust;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap");
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
    for (int round = 0; round < ROUNDS; round++) {
        memset(shared, 0, sizeof *shared);
        pthread_mutex_init(&shared->lock, &robust);
        if (!MUST(fork())) {
            close(other);
            share(port, round % KINDS);
        }
        while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < 2)
            usleep(100);
        int victim = next_random(&random, 2);
        usleep(next_random(&random, 3000));
        MUST(kill(shared->pids[victim], SIGKILL));
        stage("the victim's end");
        if (victim == 0) /* the other one is the survivor's child, and stays a zombie */
            MUST(waitpid(shared->pids[0], &status, 0));
        __atomic_store_n(&shared->dead, 1, __ATOMIC_RELEASE);
        tell();
        stage("the survivor's end");
        MUST(waitpid(shared->pids[!victim], &status, 0));
        if (status)
            die("the survivor");
        if (victim == 1)
            MUST(waitpid(shared->pids[1], &status, 0));
        ping_pong(other, CLIENT, 5);
    }
    ping_pong(other, CLIENT, 400);
    say("killed: %d", ROUNDS);
}

/* ---- the peer ---- */

static void take_apart(int fd, int kind)
{
    static unsigned char piece[65536];
    uint64_t counts[2] = {0};
    int last = -1, cut[2] = {0};
    for (long got; (got = MUST(recv(fd, piece, sizeof piece, 0)));) {
        for (long i = 0; i < got; i++) {
            int writer = piece[i] >> 7;
            if ((piece[i] & 0x7f) != text_at(writer, counts[writer]))
                die("a byte");
            /* Whose message was cut short is dead. */
            if (kind == LOCKED && cut[writer])
                die("a message in the middle of another");
            if (writer != last && last >= 0 && counts[last] % SIZE)
                cut[last] = 1;
            last = writer;
            counts[writer]++;
        }
    }
    send_all(fd, counts, sizeof counts);
}

static void server(int listener)
{
    char byte;
    int other = accept_warm(listener);
    for (int round = 0; round < ROUNDS; round++) {
        int fd = accept_one(listener), kind = round % KINDS;
        ping_pong(fd, SERVER, 60);
        stage(kind == RECEIVING ? "send" : "receive");
        if (kind == RECEIVING) {
            send_numbered(fd);
            MUST(shutdown(fd, SHUT_WR));
        } else {
            take_apart(fd, kind);
            hear();
        }
        stage("the end");
        if (recv(fd, &byte, 1, 0))
            die("the end");
        close(fd);
        ping_pong(other, SERVER, 5);
    }
    ping_pong(other, SERVER, 400);
    say("survived: %d", ROUNDS);
}

ROLES(server, client)
