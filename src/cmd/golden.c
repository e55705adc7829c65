/* From what was typed to what is compared. */
#include "cmd/golden.h"

#include "base/fd.h"
#include "base/words.h"
#include "target/program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int hash_take(struct golden *golden, const char *hex, struct why *why)
{
    if (strlen(hex) != SHA256_TEXT_BYTES - 1 ||
        strspn(hex, "0123456789abcdef") != SHA256_TEXT_BYTES - 1)
        return why_set(why, WHY_USAGE, EINVAL, "'sha256sum FILE' prints it",
                       "a sha256 has 64 digits from 0 to f");
    golden->kind = GOLDEN_HASH;
    memcpy(golden->sha256, hex, SHA256_TEXT_BYTES);
    return 0;
}

static int file_take(struct golden *golden, const char *path, struct why *why)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct sha256 hash;
    sha256_init(&hash);
    char bytes[65536];
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
        sha256_add(&hash, bytes, (size_t)n);
    if (n < 0)
        return why_errno(why, errno, NULL, "cannot read the golden output '%s'", path);
    golden->kind = GOLDEN_HASH;
    sha256_finish(&hash, golden->sha256);
    return 0;
}

int golden_make(struct arena *arena, const char *given, struct golden *ret, struct why *why)
{
    struct golden golden = {.given = given};
    struct stat st;
    struct words words;
    char path[PATH_MAX];
    int r = 0;
    if (!given)
        golden.kind = GOLDEN_NONE;
    else if (strncmp(given, "sha256:", 7) == 0)
        r = hash_take(&golden, given + 7, why);
    else if (stat(given, &st) == 0 && S_ISREG(st.st_mode))
        r = file_take(&golden, given, why);
    else if (words_split(arena, given, &words, NULL) == 0 && words.count > 0 &&
             (words.syntax || words.pattern || program_find(words.argv[0], path, NULL) == 0))
        golden.kind = GOLDEN_CHECK;
    else
        r = why_set(why, WHY_USAGE, ENOENT,
                    "give a file, sha256:HEX, or a command that reads the output from its stdin",
                    "--golden '%s' is neither a file nor a command", given);
    if (r == 0)
        *ret = golden;
    return r;
}
