/*
 * close by one thread while another is blocked in recv, and the number names another stream at once: the blocked call
 * goes on with the stream that it began with, and takes nothing from the other.
 */
#include "program.h"

static int first, listener_of_second;

static void *close_and_reuse(void *number)
{
    sleep_ms(80);
    MUST(close(first));
    *(int *)number = accept_one(listener_of_second);
    tell(); /* now the peer sends on both */
    return NULL;
}

static void server(int listener)
{
    char bytes[10];
    for (int round = 0; round < 5; round++) {
        pthread_t thread;
        int second = -1;
        first = accept_one(listener);
        listener_of_second = listener;
        warm(first, SERVER);
        int number = first;
        MUST(-pthread_create(&thread, NULL, close_and_reuse, &second));
        long got = recv(first, bytes, 5, MSG_WAITALL);
        say("recv: %ld, %.5s", got, got == 5 ? bytes : "");
        pthread_join(thread, NULL);
        say_yes("the same number", second == number);
        warm(second, SERVER);
        say("from the second: %zu, %.5s", recv_all(second, bytes, 5), bytes);
        close(second);
        meet();
    }
}

static void client(int port)
{
    char byte;
    for (int round = 0; round < 5; round++) {
        int fd = connect_to(port), other = connect_to(port);
        warm(fd, CLIENT);
        hear();
        send_all(fd, "12345", 5);
        warm(other, CLIENT);
        send_all(other, "67890", 5);
        say_result("first", recv(fd, &byte, 1, 0));
        say_result("second", recv(other, &byte, 1, 0));
        meet();
        close(fd);
        close(other);
    }
}

ROLES(server, client)
