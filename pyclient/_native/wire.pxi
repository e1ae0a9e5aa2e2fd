# Integers as Kafka writes them: big-endian, and zig-zag varints.
#
# A reader is given the end of its input and never looks past it; it answers a bad varint with a
# null cursor. Lengths are checked by the caller against the bytes left.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t wire_zigzag(int64_t value) {
        return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    }
    static inline int64_t wire_unzigzag(uint64_t value) {
        return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    }
    /* Seven bits a byte: ceil(bits / 7). Nearly all varints of a record have one or two bytes. */
    static inline int wire_varint_size(int64_t value) {
        uint64_t rest = wire_zigzag(value);
        if (rest < 0x80) return 1;
        if (rest < 0x4000) return 2;
        return ((64 - __builtin_clzll(rest)) * 9 + 64) >> 6;
    }
    static inline uint8_t *wire_put_varint(uint8_t *at, int64_t value) {
        uint64_t rest = wire_zigzag(value);
        for (; rest >= 0x80; rest >>= 7)
            *at++ = (uint8_t)rest | 0x80;
        *at++ = (uint8_t)rest;
        return at;
    }
    static const uint8_t *wire_get_long_varint(
            const uint8_t *at, const uint8_t *end, int max_bytes, int64_t *value) {
        uint64_t sum = 0;
        for (int shift = 0; max_bytes > 0 && at < end; max_bytes--, shift += 7) {
            uint8_t byte = *at++;
            /* The tenth byte of a varlong has one bit to give, the fifth of a varint four. */
            if (max_bytes == 1 && byte > (shift == 63 ? 0x01 : 0x0f)) return NULL;
            sum |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80) {
                *value = wire_unzigzag(sum);
                return at;
            }
        }
        return NULL;
    }
    /* Most varints of a record are one byte long, so that case is inlined. */
    static inline const uint8_t *wire_get_varlong(
            const uint8_t *at, const uint8_t *end, int64_t *value) {
        if (at < end && *at < 0x80) {
            *value = wire_unzigzag(*at);
            return at + 1;
        }
        return wire_get_long_varint(at, end, 10, value);
    }
    static inline const uint8_t *wire_get_varint(
            const uint8_t *at, const uint8_t *end, int64_t *value) {
        if (at < end && *at < 0x80) {
            *value = wire_unzigzag(*at);
            return at + 1;
        }
        return wire_get_long_varint(at, end, 5, value);
    }
    static inline void wire_put(uint8_t *at, uint64_t value, int size) {
        for (int byte = size - 1; byte >= 0; byte--, value >>= 8)
            at[byte] = (uint8_t)value;
    }
    /* memcpy in pieces of 2 KB. Above that glibc copies by `rep movsb`, which on AMD's Zen is up to
     * thirty times as slow when target and source begin within 64 bytes of each other in a page;
     * and a buffer's 61st byte and the bytes of a Python object do. */
    static inline void wire_copy(uint8_t *target, const uint8_t *source, size_t size) {
        for (; size > 2048; target += 2048, source += 2048, size -= 2048)
            memcpy(target, source, 2048);
        memcpy(target, source, size);
    }
    /* Addition that wraps, as Java's does: a delta from the wire may be anything. */
    static inline int64_t wire_add(int64_t left, int64_t right) {
        return (int64_t)((uint64_t)left + (uint64_t)right);
    }
    """
    int wire_varint_size(int64_t value) noexcept nogil
    uint8_t *wire_put_varint(uint8_t *at, int64_t value) noexcept nogil
    const uint8_t *wire_get_varlong(
        const uint8_t *at, const uint8_t *end, int64_t *value) noexcept nogil
    const uint8_t *wire_get_varint(
        const uint8_t *at, const uint8_t *end, int64_t *value) noexcept nogil
    void wire_put(uint8_t *at, uint64_t value, int size) noexcept nogil
    void wire_copy(uint8_t *target, const uint8_t *source, size_t size) noexcept nogil
    int64_t wire_add(int64_t left, int64_t right) noexcept nogil
