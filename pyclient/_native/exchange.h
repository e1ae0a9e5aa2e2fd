/* One turn of the I/O thread: write what is queued, wait, read whole frames. No GIL, no Python.
 *
 * A stream belongs to the thread that runs the turns. Only three things are touched by others, all
 * atomically: the flags of `struct wakeup`, the spare memory of frames, and `io_waiters`.
 *
 * POSIX only. A turn keeps no state outside of its structs and can end at any point: what is left
 * is done by the next turn.
 */
#ifndef PYCLIENT_EXCHANGE_H
#define PYCLIENT_EXCHANGE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum {
    SCRATCH_BYTES = 1 << 16,
    FIRST_STEP_BYTES = 1 << 22, /* what an announced length may allocate before its bytes come */
    PARTS_PER_CALL_MAX = 1024,
    READS_PER_ROUND_MAX = 16, /* then the other connections have their turn */
    SPARES = 3,
    SPARE_BYTES_MIN = 1 << 17,
    SPARE_BYTES_MAX = 9 << 20, /* a fetch of the default size, and its headers */
};

/* Besides errno, what can be wrong with a stream. */
enum { STREAM_FINE = 0, STREAM_ENDED = -1, STREAM_BAD_LENGTH = -2, STREAM_NO_MEMORY = -3 };

/* --- memory of frames -------------------------------------------------------------------------
 * Not zeroed, and large blocks are used again: the system would give, fault in and zero a new page
 * for every 4 KB received. At most SPARES blocks of at most SPARE_BYTES_MAX are kept, in all. */

struct block {
    size_t capacity;
    uint8_t data[];
};

static struct block *spare_blocks[SPARES];

static struct block *block_take(size_t wanted, size_t largest_new) {
    struct block *block;
    size_t capacity = wanted < largest_new ? wanted : largest_new;
    if (capacity >= SPARE_BYTES_MIN)
        for (int slot = 0; slot < SPARES; slot++) {
            block = __atomic_exchange_n(&spare_blocks[slot], NULL, __ATOMIC_ACQ_REL);
            if (block == NULL)
                continue;
            if (block->capacity >= capacity && block->capacity / 2 <= wanted)
                return block;
            struct block *none = NULL;
            if (!__atomic_compare_exchange_n(&spare_blocks[slot], &none, block, 0,
                                             __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                free(block);
        }
    block = malloc(sizeof(struct block) + capacity);
    if (block != NULL)
        block->capacity = capacity;
    return block;
}

static void block_give_back(struct block *block) {
    if (block == NULL)
        return;
    if (block->capacity >= SPARE_BYTES_MIN && block->capacity <= SPARE_BYTES_MAX)
        for (int slot = 0; slot < SPARES; slot++) {
            struct block *none = NULL;
            if (__atomic_compare_exchange_n(&spare_blocks[slot], &none, block, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return;
        }
    free(block);
}

/* --- one connection ---------------------------------------------------------------------------*/

struct frame {
    struct block *block;
    size_t size;
};

struct stream {
    int fd;
    int error; /* errno, or one of STREAM_* */
    int32_t bad_length;
    uint8_t is_connecting;
    uint8_t waits_to_write;
    uint8_t has_news;
    void *owner; /* the Python object; not touched here */

    struct iovec *parts; /* of those queued, first_part to end_part are not written */
    size_t first_part, end_part, capacity;

    size_t limit;
    uint8_t head[4]; /* of a length that has not arrived in full */
    size_t head_size;
    struct block *block; /* the frame under construction */
    size_t length, filled;
    struct frame *frames; /* whole ones */
    size_t frame_count, frame_capacity;
};

static int stream_queue(struct stream *stream, void *data, size_t size) {
    if (stream->first_part == stream->end_part)
        stream->first_part = stream->end_part = 0;
    if (stream->end_part == stream->capacity) {
        size_t capacity = stream->capacity ? 2 * stream->capacity : 16;
        struct iovec *parts = realloc(stream->parts, capacity * sizeof *parts);
        if (parts == NULL)
            return -1;
        stream->parts = parts;
        stream->capacity = capacity;
    }
    stream->parts[stream->end_part].iov_base = data;
    stream->parts[stream->end_part].iov_len = size;
    stream->end_part++;
    return 0;
}

/* Write what is queued, as far as the system takes it. */
static void stream_flush(struct stream *stream) {
    stream->waits_to_write = 0;
    while (stream->first_part < stream->end_part) {
        size_t count = stream->end_part - stream->first_part;
        struct msghdr message = {0};
        message.msg_iov = stream->parts + stream->first_part;
        message.msg_iovlen = count < PARTS_PER_CALL_MAX ? count : PARTS_PER_CALL_MAX;
        ssize_t sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                stream->waits_to_write = 1;
            else if (errno == EINTR)
                continue;
            else
                stream->error = errno;
            return;
        }
        size_t left = (size_t)sent;
        while (stream->first_part < stream->end_part) {
            struct iovec *part = stream->parts + stream->first_part;
            if (part->iov_len > left) {
                part->iov_base = (uint8_t *)part->iov_base + left;
                part->iov_len -= left;
                break;
            }
            left -= part->iov_len;
            stream->first_part++;
        }
    }
}

static int stream_finish_frame(struct stream *stream, struct block *block, size_t size) {
    if (stream->frame_count == stream->frame_capacity) {
        size_t capacity = stream->frame_capacity ? 2 * stream->frame_capacity : 8;
        struct frame *frames = realloc(stream->frames, capacity * sizeof *frames);
        if (frames == NULL)
            return -1;
        stream->frames = frames;
        stream->frame_capacity = capacity;
    }
    stream->frames[stream->frame_count].block = block;
    stream->frames[stream->frame_count].size = size;
    stream->frame_count++;
    return 0;
}

/* Take bytes that were received in `scratch`; the head of an incomplete length is before them. */
static int stream_cut(struct stream *stream, const uint8_t *at, const uint8_t *end) {
    while (end - at >= 4) {
        uint32_t length = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        if (length > stream->limit || length > INT32_MAX) {
            stream->bad_length = (int32_t)length;
            return STREAM_BAD_LENGTH;
        }
        at += 4;
        size_t here = (size_t)(end - at) < length ? (size_t)(end - at) : length;
        struct block *block = block_take(length, here < length ? FIRST_STEP_BYTES : length);
        if (block == NULL)
            return STREAM_NO_MEMORY;
        memcpy(block->data, at, here);
        at += here;
        if (here < length) {
            stream->block = block;
            stream->length = length;
            stream->filled = here;
            break;
        }
        if (stream_finish_frame(stream, block, length) < 0) {
            free(block);
            return STREAM_NO_MEMORY;
        }
    }
    stream->head_size = (size_t)(end - at);
    memcpy(stream->head, at, stream->head_size);
    return STREAM_FINE;
}

/* Take bytes that were received into the frame under construction. */
static int stream_continue(struct stream *stream, size_t count) {
    struct block *block = stream->block;
    stream->filled += count;
    if (stream->filled == stream->length) {
        if (stream_finish_frame(stream, block, stream->length) < 0)
            return STREAM_NO_MEMORY;
        stream->block = NULL;
    } else if (stream->filled == block->capacity) {
        size_t capacity = 2 * stream->filled < stream->length ? 2 * stream->filled : stream->length;
        block = realloc(block, sizeof(struct block) + capacity);
        if (block == NULL)
            return STREAM_NO_MEMORY;
        block->capacity = capacity;
        stream->block = block;
    }
    return STREAM_FINE;
}

/* Read what has arrived. */
static void stream_receive(struct stream *stream, uint8_t *scratch) {
    for (int reads = 0; reads < READS_PER_ROUND_MAX && stream->error == STREAM_FINE; reads++) {
        struct block *block = stream->block;
        uint8_t *target;
        size_t room;
        if (block != NULL) {
            room = (block->capacity < stream->length ? block->capacity : stream->length)
                   - stream->filled;
            target = block->data + stream->filled;
        } else {
            memcpy(scratch, stream->head, stream->head_size);
            room = SCRATCH_BYTES - stream->head_size;
            target = scratch + stream->head_size;
        }
        ssize_t count = recv(stream->fd, target, room, 0);
        if (count < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                stream->error = errno;
            return;
        }
        if (count == 0)
            stream->error = STREAM_ENDED;
        else if (block != NULL)
            stream->error = stream_continue(stream, (size_t)count);
        else
            stream->error = stream_cut(stream, scratch, target + count);
        if ((size_t)count < room)
            return;
    }
}

/* Write; if that fails, read what the other side has said before it went. */
static void stream_write(struct stream *stream, uint8_t *scratch) {
    stream_flush(stream);
    if (stream->error != STREAM_FINE) {
        int error = stream->error;
        stream->error = STREAM_FINE;
        stream_receive(stream, scratch);
        stream->error = error;
    }
}

static void stream_finish_connecting(struct stream *stream) {
    int code = 0;
    socklen_t size = sizeof code;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
        code = errno;
    stream->error = code;
    stream->is_connecting = 0;
}

static void stream_clear(struct stream *stream) {
    block_give_back(stream->block);
    for (size_t index = 0; index < stream->frame_count; index++)
        block_give_back(stream->frames[index].block);
    free(stream->frames);
    free(stream->parts);
    stream->block = NULL;
    stream->frames = NULL;
    stream->parts = NULL;
    stream->frame_count = stream->frame_capacity = 0;
    stream->first_part = stream->end_part = stream->capacity = 0;
}

/* --- the turn ---------------------------------------------------------------------------------*/

/* A flag makes most wake-ups free: only a turn that sleeps needs the byte. The order matters: a
 * turn sets `asleep` before it reads `woken`, and a waker the other way round, so that either the
 * turn sees the flag or the waker sees that it sleeps. A byte too many does no harm. */
struct wakeup {
    int receiver;
    int sender;
    int asleep;
    int woken;
};

static void wakeup_ring(struct wakeup *wakeup) {
    __atomic_store_n(&wakeup->woken, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&wakeup->asleep, __ATOMIC_SEQ_CST) && wakeup->sender >= 0) {
        ssize_t sent = send(wakeup->sender, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent; /* full: the turn is being woken already */
    }
}

struct turn {
    struct wakeup wakeup;
    struct stream **streams;
    struct pollfd *waits; /* one more than streams: the wake-up comes first */
    size_t count, capacity;
    uint8_t *scratch;
};

static int64_t turn_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int turn_add(struct turn *turn, struct stream *stream) {
    if (turn->count == turn->capacity) {
        size_t capacity = turn->capacity ? 2 * turn->capacity : 8;
        struct stream **streams = realloc(turn->streams, capacity * sizeof *streams);
        if (streams == NULL)
            return -1;
        turn->streams = streams;
        struct pollfd *waits = realloc(turn->waits, (capacity + 1) * sizeof *waits);
        if (waits == NULL)
            return -1;
        turn->waits = waits;
        turn->capacity = capacity;
    }
    turn->streams[turn->count++] = stream;
    return 0;
}

static void turn_remove(struct turn *turn, struct stream *stream) {
    for (size_t index = 0; index < turn->count; index++)
        if (turn->streams[index] == stream) {
            memmove(turn->streams + index, turn->streams + index + 1,
                    (turn->count - index - 1) * sizeof *turn->streams);
            turn->count--;
            return;
        }
}

static int turn_wait(struct turn *turn, int64_t until_ns) {
    int64_t left_ns = until_ns < 0 ? -1 : until_ns - turn_now_ns();
    if (until_ns >= 0 && left_ns < 0)
        left_ns = 0;
#ifdef __linux__
    struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
    return ppoll(turn->waits, turn->count + 1, left_ns < 0 ? NULL : &left, NULL);
#else
    return poll(turn->waits, turn->count + 1, left_ns < 0 ? -1 : (int)((left_ns + 999999) / 1000000));
#endif
}

/* Write, then wait and read until a stream has news, the time is up, or `wakeup` rings. `until_ns`
 * is of the monotonic clock; 0 is not to wait, -1 to wait without end. Returns whether a signal
 * ended it early. */
static int turn_run(struct turn *turn, int64_t until_ns) {
    int has_news = 0, is_cut_off = 0;
    for (size_t index = 0; index < turn->count; index++) {
        struct stream *stream = turn->streams[index];
        if (stream->first_part < stream->end_part && !stream->waits_to_write
            && !stream->is_connecting && stream->error == STREAM_FINE) {
            stream_write(stream, turn->scratch);
            stream->has_news |= stream->error != STREAM_FINE;
        }
        has_news |= stream->has_news;
    }
    __atomic_store_n(&turn->wakeup.asleep, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        if (has_news || __atomic_load_n(&turn->wakeup.woken, __ATOMIC_SEQ_CST)
            || (until_ns > 0 && turn_now_ns() >= until_ns))
            until_ns = 0; /* one last look, even if bytes of a frame keep coming */
        struct pollfd *waits = turn->waits;
        waits[0].fd = turn->wakeup.receiver;
        waits[0].events = POLLIN;
        for (size_t index = 0; index < turn->count; index++) {
            struct stream *stream = turn->streams[index];
            int writes = stream->is_connecting || stream->waits_to_write;
            waits[index + 1].fd = stream->error == STREAM_FINE ? stream->fd : -1;
            waits[index + 1].events = (stream->is_connecting ? 0 : POLLIN) | (writes ? POLLOUT : 0);
        }
        int ready = turn_wait(turn, until_ns);
        if (ready < 0) {
            is_cut_off = errno == EINTR;
            break;
        }
        if (ready == 0)
            break; /* the time is up */
        if (waits[0].revents) {
            uint8_t rings[64];
            ssize_t count = recv(turn->wakeup.receiver, rings, sizeof rings, MSG_DONTWAIT);
            (void)count;
        }
        for (size_t index = 0; index < turn->count; index++) {
            struct stream *stream = turn->streams[index];
            int events = waits[index + 1].revents;
            if (events == 0)
                continue;
            if (events & POLLNVAL)
                stream->error = EBADF;
            if (stream->is_connecting) {
                stream_finish_connecting(stream);
                stream->has_news = 1;
            }
            if (stream->error == STREAM_FINE && events & POLLOUT) {
                stream_write(stream, turn->scratch);
                stream->has_news = 1;
            }
            if (stream->error == STREAM_FINE && events & (POLLIN | POLLERR | POLLHUP))
                stream_receive(stream, turn->scratch);
            stream->has_news |= stream->error != STREAM_FINE || stream->frame_count > 0;
            has_news |= stream->has_news;
        }
        if (has_news || waits[0].revents || until_ns == 0)
            break;
    }
    __atomic_store_n(&turn->wakeup.asleep, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&turn->wakeup.woken, 0, __ATOMIC_SEQ_CST);
    return is_cut_off;
}

#endif
