/*
 * Messages of one size that a reader finds again when somebody has left in the middle of one: they begin with the only
 * byte that has bit 7, and carry their number in the next five.
 */
#ifndef NUMBERED_H
#define NUMBERED_H

#include "program.h"

enum { NUMBERED = 600, AFTERWARDS = 100 };

FN void write_numbered(unsigned char *message, uint32_t number)
{
    message[0] = 0x80;
    for (int i = 1; i <= 5; i++, number >>= 7)
        message[i] = number & 0x7f;
    for (int i = 6; i < NUMBERED; i++)
        message[i] = byte_at(number, (uint64_t)message[1] * NUMBERED + i) & 0x7f;
}

FN uint32_t number_of(const unsigned char *message)
{
    uint32_t number = 0;
    for (int i = 5; i > 0; i--)
        number = number << 7 | message[i];
    return number;
}

/*
 * Reads a message; 0 at the end of the stream. `next` is the number that is due. Up to `left` readers have gone, each
 * with a message, or a part of one, that was not counted any more.
 */
FN int receive_numbered(int fd, int left, uint32_t *next)
{
    unsigned char message[NUMBERED] = {0}, wanted[NUMBERED];
    size_t had = 0;
    if (left) {
        while (recv_all(fd, message, 1) == 1 && !(message[0] & 0x80))
            ;
        had = message[0] >> 7;
    }
    if (had || !left)
        had += recv_all(fd, message + had, NUMBERED - had);
    if (!had)
        return 0;
    uint32_t number = number_of(message);
    write_numbered(wanted, number);
    if (had != NUMBERED || memcmp(message, wanted, NUMBERED) || number < *next || number > *next + left)
        die("a numbered message");
    *next = number + 1;
    return 1;
}

/* Sends until it is told that this is enough, and some more. */
FN void send_numbered(int fd)
{
    unsigned char message[NUMBERED];
    int more = AFTERWARDS, told = 0;
    for (uint32_t number = 0; more; number++, more -= told) {
        write_numbered(message, number);
        send_all(fd, message, NUMBERED);
        if (!told)
            told = recv(turns, (char[1]){0}, 1, MSG_DONTWAIT) == 1;
    }
}

#endif
