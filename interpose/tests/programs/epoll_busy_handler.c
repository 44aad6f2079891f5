/*
 * Two threads wait in one set. The one that got the first message does not come back before the other has got the
 * second: whatever comes while a handler is busy is for those who still wait.
 */
#include "program.h"

enum { ROUNDS = 200 };

static int set, stream, fired[2];

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        struct epoll_event event;
        char byte;
        MUST(epoll_wait(set, &event, 1, -1));
        if (event.data.fd != stream)
            return NULL;
        if (recv(stream, &byte, 1, MSG_DONTWAIT) != 1)
            continue;
        send_all(stream, &byte, 1);
        if (byte == '1') /* busy until the second message was served */
            MUST(read(fired[0], &byte, 1));
        else
            MUST(write(fired[1], "", 1));
    }
}

static void server(int listener)
{
    unsigned modes[] = {0, EPOLLET};
    for (int i = 0; i < 2; i++) {
        pthread_t threads[2];
        int end[2];
        stage(i ? "edge" : "level");
        stream = accept_warm(listener);
        MUST(pipe(fired));
        MUST(pipe(end));
        set = MUST(epoll_create1(0));
        epoll_add(set, stream, EPOLLIN | modes[i]);
        epoll_add(set, end[0], EPOLLIN);
        for (int t = 0; t < 2; t++)
            MUST(-pthread_create(&threads[t], NULL, serve, NULL));
        hear();
        MUST(write(end[1], "", 1));
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
        say("%s: served", stage_now);
        close(stream);
        tell();
    }
}

static void client(int port)
{
    for (int i = 0; i < 2; i++) {
        int fd = connect_to(port);
        char byte;
        warm(fd, CLIENT);
        for (int round = 0; round < ROUNDS; round++) {
            if (round % 50 == 0)
                sleep_ms(20); /* both asleep */
            for (char message = '1'; message <= '2'; message++) {
                send_all(fd, &message, 1);
                if (recv_all(fd, &byte, 1) != 1 || byte != message)
                    die("answer");
            }
        }
        say("all answered");
        tell();
        hear();
        close(fd);
    }
}

ROLES(server, client)
