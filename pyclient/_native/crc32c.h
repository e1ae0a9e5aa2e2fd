/* CRC-32C (Castagnoli), the checksum of record batches.
 *
 * One entry point, crc32c_extend(), over a register that the caller keeps between pieces of a
 * batch. It uses the instruction of SSE4.2 or of ARMv8 where the processor has it and an eight-way
 * table where not. Call crc32c_prepare() once before; afterwards everything here is read-only, so any number
 * of threads may use it without the GIL.
 */
#ifndef PYCLIENT_CRC32C_H
#define PYCLIENT_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define CRC32C_HARDWARE 1
#define CRC32C_TARGET __attribute__((target("sse4.2")))
#include <nmmintrin.h>
#define crc32c_word(state, word) ((uint32_t)_mm_crc32_u64((state), (word)))
#define crc32c_byte(state, byte) _mm_crc32_u8((state), (byte))
static int crc32c_find_hardware(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__GNUC__) && (defined(__linux__) || defined(__APPLE__))
#define CRC32C_HARDWARE 1
/* By the assembler, not by <arm_acle.h>, which older compilers hide unless the whole file is
 * compiled for a processor that has the instructions. */
#define CRC32C_TARGET
static inline uint32_t crc32c_word(uint32_t state, uint64_t word) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    return state;
}
static inline uint32_t crc32c_byte(uint32_t state, uint8_t byte) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"((uint32_t)byte));
    return state;
}
#if defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
static int crc32c_find_hardware(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#else
static int crc32c_find_hardware(void) { return 1; } /* every 64-bit processor of Apple's */
#endif
#endif

#define CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t crc32c_table[8][256];

static uint64_t crc32c_load64(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint32_t crc32c_extend_portable(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word = crc32c_load64(data) ^ state;
        state = crc32c_table[7][word & 0xff] ^ crc32c_table[6][(word >> 8) & 0xff] ^
                crc32c_table[5][(word >> 16) & 0xff] ^ crc32c_table[4][(word >> 24) & 0xff] ^
                crc32c_table[3][(word >> 32) & 0xff] ^ crc32c_table[2][(word >> 40) & 0xff] ^
                crc32c_table[1][(word >> 48) & 0xff] ^ crc32c_table[0][word >> 56];
    }
    for (; size; data++, size--)
        state = (state >> 8) ^ crc32c_table[0][(state ^ *data) & 0xff];
    return state;
}

static void crc32c_prepare_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++)
            state = (state >> 1) ^ (state & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[0][byte] = state;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc32c_table[slice - 1][byte];
            crc32c_table[slice][byte] = (before >> 8) ^ crc32c_table[0][before & 0xff];
        }
}

#ifdef CRC32C_HARDWARE

/* The instruction has a latency of three cycles and a throughput of one, so three independent
 * lanes run at once. A lane's register is carried over the lanes behind it by a linear map,
 * "append LANE zero bytes", kept as four tables of 256. */
#define CRC32C_LONG_LANE 2048
#define CRC32C_SHORT_LANE 256

typedef uint32_t crc32c_zeros[4][256];

static int crc32c_has_hardware;
static crc32c_zeros crc32c_long_zeros, crc32c_short_zeros;

static uint32_t crc32c_append_zeros(crc32c_zeros zeros, uint32_t state) {
    return zeros[0][state & 0xff] ^ zeros[1][(state >> 8) & 0xff] ^
           zeros[2][(state >> 16) & 0xff] ^ zeros[3][state >> 24];
}

static void crc32c_prepare_zeros(crc32c_zeros zeros, size_t lane) {
    static const uint8_t nothing[256] = {0};
    uint32_t image[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t state = (uint32_t)1 << bit;
        for (size_t done = 0; done < lane; done += sizeof nothing)
            state = crc32c_extend_portable(state, nothing, sizeof nothing);
        image[bit] = state;
    }
    for (int slice = 0; slice < 4; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (byte >> bit & 1) sum ^= image[8 * slice + bit];
            zeros[slice][byte] = sum;
        }
}

CRC32C_TARGET
static uint32_t crc32c_three_lanes(
        uint32_t state, const uint8_t *data, size_t lane, crc32c_zeros zeros) {
    uint32_t first = state, second = 0, third = 0;
    for (size_t at = 0; at < lane; at += 8) {
        first = crc32c_word(first, crc32c_load64(data + at));
        second = crc32c_word(second, crc32c_load64(data + lane + at));
        third = crc32c_word(third, crc32c_load64(data + 2 * lane + at));
    }
    state = crc32c_append_zeros(zeros, first) ^ second;
    return crc32c_append_zeros(zeros, state) ^ third;
}

CRC32C_TARGET
static uint32_t crc32c_extend_hardware(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 3 * CRC32C_LONG_LANE; data += 3 * CRC32C_LONG_LANE, size -= 3 * CRC32C_LONG_LANE)
        state = crc32c_three_lanes(state, data, CRC32C_LONG_LANE, crc32c_long_zeros);
    for (; size >= 3 * CRC32C_SHORT_LANE;
         data += 3 * CRC32C_SHORT_LANE, size -= 3 * CRC32C_SHORT_LANE)
        state = crc32c_three_lanes(state, data, CRC32C_SHORT_LANE, crc32c_short_zeros);
    for (; size >= 8; data += 8, size -= 8)
        state = crc32c_word(state, crc32c_load64(data));
    for (; size; data++, size--)
        state = crc32c_byte(state, *data);
    return state;
}

#endif

static void crc32c_prepare(void) {
    crc32c_prepare_table();
#ifdef CRC32C_HARDWARE
    crc32c_prepare_zeros(crc32c_long_zeros, CRC32C_LONG_LANE);
    crc32c_prepare_zeros(crc32c_short_zeros, CRC32C_SHORT_LANE);
    crc32c_has_hardware = crc32c_find_hardware();
#endif
}

/* Begin with ~0 and invert the register of the last piece. */
static uint32_t crc32c_extend(uint32_t state, const uint8_t *data, size_t size) {
#ifdef CRC32C_HARDWARE
    if (crc32c_has_hardware)
        return crc32c_extend_hardware(state, data, size);
#endif
    return crc32c_extend_portable(state, data, size);
}

#endif
