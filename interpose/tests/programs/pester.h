/* A thread that sends its creator signals until told to stop; for the cases with signals. */
#ifndef PESTER_H
#define PESTER_H

#include "program.h"

static struct {
    pthread_t target, thread;
    int signal_number, times, stop;
    void (*at_the_end)(void);
} pester;

static volatile sig_atomic_t handled;

FN void count_signal(int signal_number)
{
    (void)signal_number;
    handled++;
}

FN void handle(int signal_number, int flags)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
    MUST(sigaction(signal_number, &action, NULL));
}

FN void *pester_body(void *unused)
{
    (void)unused;
    for (int i = 0; i < pester.times && !__atomic_load_n(&pester.stop, __ATOMIC_ACQUIRE); i++) {
        sleep_ms(30);
        if (!__atomic_load_n(&pester.stop, __ATOMIC_ACQUIRE))
            pthread_kill(pester.target, pester.signal_number);
    }
    if (pester.at_the_end)
        pester.at_the_end();
    return NULL;
}

/*
 * A signal every 30 ms, `times` at most, so that the one that matters certainly arrives while the call is blocked;
 * then `at_the_end`, which may let the call return.
 */
FN void pester_start(int signal_number, int times, void (*at_the_end)(void))
{
    pester.target = pthread_self();
    pester.signal_number = signal_number;
    pester.times = times;
    pester.stop = 0;
    pester.at_the_end = at_the_end;
    handled = 0;
    MUST(-pthread_create(&pester.thread, NULL, pester_body, NULL));
}

FN void pester_stop(void)
{
    int error = errno;
    __atomic_store_n(&pester.stop, 1, __ATOMIC_RELEASE);
    pthread_join(pester.thread, NULL);
    errno = error;
}

/* Never so few that a call is still waiting when they are over. */
enum { UNTIL_INTERRUPTED = 300, FIVE = 5 };

#define PESTERED_(what, times, at_the_end, call)                                                                       \
    ({                                                                                                                 \
        stage(what);                                                                                                   \
        pester_start(SIGUSR1, times, at_the_end);                                                                      \
        long result_ = (call);                                                                                         \
        pester_stop();                                                                                                 \
        say_result(what, result_);                                                                                     \
        say_yes("  handler ran", handled > 0);                                                                         \
        result_;                                                                                                       \
    })

/* A call that a signal must end, and what it returned. */
#define INTERRUPTED(what, call) PESTERED_(what, UNTIL_INTERRUPTED, NULL, call)

/* A call that signals must not end; after five of them the peer is told, and lets it return. */
#define RESTARTED(what, call) PESTERED_(what, FIVE, tell, call)

#endif
