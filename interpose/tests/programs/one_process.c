/* One thread is client and server at once: whatever it waits for it has itself sent before. */
#include "program.h"

static void self(void)
{
    static char bytes[60000], answer[60000];
    int port, listener = listen_any(&port);
    int out = connect_to(port), in = accept_one(listener);
    stage("round trips");
    for (int i = 0; i < 2000; i++) {
        size_t size = 1 + i % 200;
        fill(i, 0, bytes, size);
        send_all(out, bytes, size);
        if (recv_all(in, answer, size) != size || !intact(i, 0, answer, size))
            die("one way");
        send_all(in, answer, size);
        if (recv_all(out, answer, size) != size || !intact(i, 0, answer, size))
            die("and back");
    }
    say("round trips");
    stage("larger ones");
    for (int i = 0; i < 50; i++) {
        fill(i, 0, bytes, sizeof bytes);
        send_all(out, bytes, sizeof bytes);
        send_all(in, bytes, sizeof bytes);
        for (int way = 0; way < 2; way++)
            if (recv_all(way ? in : out, answer, sizeof answer) != sizeof answer || memcmp(bytes, answer, sizeof bytes))
                die("bytes");
    }
    say("larger ones");
    stage("until it is full");
    size_t sent = fill_up(out), got = 0;
    say_yes("full", sent > 0);
    set_nonblocking(in);
    while (got < sent) {
        struct pollfd entry = {.fd = in, .events = POLLIN};
        MUST(poll(&entry, 1, -1));
        long part = recv(in, answer, sizeof answer, 0);
        got += part > 0 ? part : 0;
    }
    say("all of it came");
    MUST(close(out));
    await_poll(in, POLLRDHUP);
    say_result("at the end", recv(in, answer, 1, 0));
    close(in);
}

SELF(self)
