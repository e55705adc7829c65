/* Reads program headers and notes with pread(): a file that shrinks meanwhile is no danger. */
#include "target/build_id.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MAX = 256, NOTES_BYTES_MAX = 8192 };

static size_t align4(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

static int notes_search(const uint8_t *notes, size_t len, uint8_t *ret)
{
    size_t at = 0;
    while (len - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof(note));
        at += sizeof(note);
        if (note.n_namesz > len || note.n_descsz > len ||
            align4(note.n_namesz) + align4(note.n_descsz) > len - at)
            return 0; /* cut off here: what was looked for may lie behind, or not */
        const uint8_t *name = notes + at, *id = name + align4(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= BUILD_ID_BYTES_MAX) {
            memcpy(ret, id, note.n_descsz);
            return (int)note.n_descsz;
        }
        at += align4(note.n_namesz) + align4(note.n_descsz);
    }
    return 0;
}

int build_id_read(int fd, uint8_t ret[BUILD_ID_BYTES_MAX])
{
    Elf64_Ehdr ehdr;
    if (pread(fd, &ehdr, sizeof(ehdr), 0) != (ssize_t)sizeof(ehdr) ||
        memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
        ehdr.e_phentsize != sizeof(Elf64_Phdr) || ehdr.e_phnum > HEADERS_MAX ||
        ehdr.e_phoff > INT64_MAX / 2)
        return -EBADMSG;
    for (unsigned i = 0; i < ehdr.e_phnum; i++) {
        Elf64_Phdr phdr;
        uint8_t notes[NOTES_BYTES_MAX];
        if (pread(fd, &phdr, sizeof(phdr), (off_t)(ehdr.e_phoff + i * sizeof(phdr))) !=
            (ssize_t)sizeof(phdr))
            return -EBADMSG;
        if (phdr.p_type != PT_NOTE || phdr.p_offset > INT64_MAX)
            continue;
        ssize_t n = pread(fd, notes, phdr.p_filesz < sizeof(notes) ? phdr.p_filesz : sizeof(notes),
                          (off_t)phdr.p_offset);
        int len = n > 0 ? notes_search(notes, (size_t)n, ret) : 0;
        if (len > 0)
            return len;
    }
    return 0;
}

void build_id_format(const uint8_t *id, size_t len, char text[2 * BUILD_ID_BYTES_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    len = len < BUILD_ID_BYTES_MAX ? len : BUILD_ID_BYTES_MAX;
    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[id[i] >> 4];
        text[2 * i + 1] = digits[id[i] & 15];
    }
    text[2 * len] = '\0';
}
