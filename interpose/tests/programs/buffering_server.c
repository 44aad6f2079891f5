/*
 * A single-threaded server passes a stream on, from a fast writer to a reader that sleeps. It keeps what the reader
 * does not take, so that the writer is done long before the reader begins.
 */
#include "program.h"

enum { BYTES = 8 << 20 };

static char store[BYTES];

static void server(int listener)
{
    int in = accept_one(listener), out = accept_one(listener), set = MUST(epoll_create1(0));
    warm(in, SERVER);
    warm(out, SERVER);
    set_nonblocking(in);
    set_nonblocking(out);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 0};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, in, &event));
    event = (struct epoll_event){.events = EPOLLOUT | EPOLLET, .data.u32 = 1};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, out, &event));
    size_t got = 0, passed = 0;
    int ended = 0;
    while (!ended || passed < got) {
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.data.u32 == 0) {
            long part = recv(in, store + got, sizeof store - got, 0);
            if (part > 0)
                got += part;
            if (part == 0 || got == sizeof store) {
                ended = 1;
                MUST(epoll_ctl(set, EPOLL_CTL_DEL, in, NULL));
            }
        }
        for (long part; passed < got && (part = send(out, store + passed, got - passed, 0)) > 0;)
            passed += part;
    }
    say("passed on: %zu", passed);
    meet();
}

static int writer_done;

static void *read_late(void *argument)
{
    int fd = *(int *)argument;
    sleep_ms(2000);
    say_yes("the writer was done before", __atomic_load_n(&writer_done, __ATOMIC_ACQUIRE));
    say("read: %zu", recv_pattern(fd, 1, BYTES));
    return NULL;
}

static void client(int port)
{
    pthread_t reader;
    int out = connect_to(port), in = connect_to(port);
    warm(out, CLIENT);
    warm(in, CLIENT);
    MUST(-pthread_create(&reader, NULL, read_late, &in));
    send_pattern(out, 1, BYTES);
    __atomic_store_n(&writer_done, 1, __ATOMIC_RELEASE);
    pthread_join(reader, NULL);
    meet();
}

ROLES(server, client)
