#!/bin/sh
# The heap library's walk on aarch64: its unit test under qemu-user, with signed return addresses.
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
flags="-std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers -g"
flags="$flags -I$root/src -I$root/preload -I$root/tests/unit -I$root/tests/aarch64/unit"
# shellcheck disable=SC2086 # a list of words
"$cc" $flags -shared -fPIC -O2 "$root/tests/unit/heap_walk_plugin.c" -o "$dir/plugin.so"
for file in walk tree rules rules_program images; do
    # shellcheck disable=SC2086
    "$cc" $flags -O2 -ffreestanding -fPIC -c "$root/preload/heap_$file.c" -o "$dir/$file.o"
done
for level in -O0 '-O2 -fomit-frame-pointer' '-O2 -mbranch-protection=standard'; do
    # shellcheck disable=SC2086
    "$cc" $flags $level "$root/tests/unit/test_heap_walk.c" "$dir"/*.o -o "$dir/test" -pthread -ldl
    echo "$level"
    WALK_PLUGIN=$dir/plugin.so "$qemu" -cpu max -L /usr/aarch64-linux-gnu "$dir/test"
done
