#!/bin/sh
# Builds the unwinder for aarch64 with the cross compiler and runs it under qemu-user.
set -eu
root=${SOURCE_ROOT:-$(dirname "$0")/../..}
cc='aarch64-linux-gnu-gcc'
qemu='qemu-aarch64'
for program in "$cc" "$qemu"; do
    command -v "$program" >/dev/null || {
        echo "SKIP: $program is missing (packages gcc-aarch64-linux-gnu, qemu-user)"
        exit 77
    }
done
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || {
    echo "SKIP: no C library for aarch64 (package libc6-dev-arm64-cross)"
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sources=$(find "$root/src/unwind" -name '*.c' ! -name unwind_elf_inflate.c)
# The same warnings as at home; signed return addresses as distributions build them.
for level in -O2 -O0; do
    # shellcheck disable=SC2086 # a list of files without blanks
    "$cc" -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers \
        $level -g -fno-omit-frame-pointer -mbranch-protection=standard -I"$root/src" \
        "$root/tests/aarch64/unwind.c" "$root/tests/aarch64/no_inflate.c" $sources \
        "$root/src/base/why.c" "$root/src/base/fd.c" "$root/src/base/temporary.c" "$root/src/base/trust.c" \
        "$root/src/base/vec.c" "$root/src/base/arena.c" "$root/src/base/str.c" -o "$dir/unwind" -lpthread
    echo "$level"
    "$qemu" -cpu max -L /usr/aarch64-linux-gnu "$dir/unwind"
done
