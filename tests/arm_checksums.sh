#!/bin/sh
# CRC-32C by ARM's instructions, cross-compiled and run by an emulator. By hand, on Debian:
#   apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user && tests/arm_checksums.sh
# Checks the instructions against the table, at many lengths and offsets.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/check.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include "crc32c.h"

int main(int count, char **arguments) {
    static uint8_t data[20000];
    uint32_t random = 1;
    crc32c_prepare();
    if (count > 1 && crc32c_has_hardware != atoi(arguments[1])) {
        printf("has hardware: %d\n", crc32c_has_hardware);
        return 1;
    }
    for (size_t at = 0; at < sizeof data; at++)
        data[at] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
    if (~crc32c_extend(~0u, (const uint8_t *)"123456789", 9) != 0xe3069283u) return 2;
    for (size_t size = 0; size < sizeof data - 8; size += size < 800 ? 1 : 97)
        for (size_t from = 0; from < 8; from++)
            if (crc32c_extend(random, data + from, size) !=
                crc32c_extend_portable(random, data + from, size)) {
                printf("%zu bytes from %zu differ\n", size, from);
                return 3;
            }
    return 0;
}
C
aarch64-linux-gnu-gcc -O2 -Wall -Werror -static -I"$here/../pyclient/_native" \
    -o "$work/check" "$work/check.c"
aarch64-linux-gnu-objdump -d "$work/check" | grep -q crc32cx
qemu-aarch64 "$work/check" 1
echo "ARM: the instructions and the table agree"
