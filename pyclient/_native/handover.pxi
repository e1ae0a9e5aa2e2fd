# Handing the GIL to an I/O thread that waits for it.
#
# A thread that decodes makes no bytecode steps, so the interpreter cannot switch it off, and letting
# go of the GIL for a moment does not help: it has it back before the other thread has woken up. So
# an I/O thread says that it waits (`exchange.pyx`), and a decoder that sees it lets go until the
# other one has it. Where nobody waits this costs a load of one word.

cdef extern from *:
    """
    #if defined(_WIN32)
    static inline void handover_yield(void) { Sleep(0); }
    static inline int64_t handover_now_us(void) { return (int64_t)GetTickCount64() * 1000; }
    #else
    #include <sched.h>
    #include <time.h>
    static inline void handover_yield(void) { sched_yield(); }
    static inline int64_t handover_now_us(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    #endif
    #if defined(__GNUC__)
    #define HANDOVER_LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
    #else
    #define HANDOVER_LOAD(word) (*(volatile int *)&(word))
    #endif

    static int handover_waiters; /* I/O threads that want the GIL back */

    static int *handover_address(void) { return &handover_waiters; }
    static inline int handover_is_due(void) { return HANDOVER_LOAD(handover_waiters) > 0; }
    /* Without the GIL: until one of them has it. Bounded, because it may be another thread's turn. */
    static void handover_wait(int64_t max_us) {
        int before = HANDOVER_LOAD(handover_waiters);
        int64_t until_us = handover_now_us() + max_us;
        while (before > 0 && HANDOVER_LOAD(handover_waiters) >= before
               && handover_now_us() < until_us)
            handover_yield();
    }
    """
    int *handover_address() noexcept nogil
    bint handover_is_due() noexcept nogil
    void handover_wait(int64_t max_us) noexcept nogil

cdef enum:
    HANDOVER_BYTES = 16384  # a decoder looks after this many bytes of records
    HANDOVER_MAX_US = 200


cdef int *io_waiters() noexcept nogil:
    return handover_address()


cdef inline int hand_over() except -1:
    if handover_is_due():
        with nogil:
            handover_wait(HANDOVER_MAX_US)
    return 0
