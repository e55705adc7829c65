/* Whether the loader will put the heap library into a program, and whether it will see anything
 * there: what the file says, as execve() and ld.so will take it. */
#include "base/fd.h"
#include "base/str.h"
#include "target/preload_heap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SCRIPTS_MAX = 5, LINE_MAX_BYTES = 256, SYMBOLS_MAX = 1 << 22 };

#if defined(__x86_64__)
enum { MACHINE_HERE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE_HERE = EM_AARCH64 };
#else
enum { MACHINE_HERE = EM_NONE };
#endif

/* The interpreter that a "#!" line names. False: it is no script. */
static bool script_follow(char path[PATH_MAX])
{
    char line[LINE_MAX_BYTES + 1];
    AUTO(fd_close) int fd = file_open_regular(path);
    ssize_t n = fd < 0 ? -1 : pread(fd, line, LINE_MAX_BYTES, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const char *name = line + 2 + strspn(line + 2, " \t");
    size_t len = strcspn(name, " \t");
    if (len == 0 || len >= PATH_MAX)
        return false;
    memcpy(path, name, len);
    path[len] = '\0';
    return true;
}

/* "#!/usr/bin/env python3" is found to be env, which is as good: exec brings the other. */
static bool program_resolve(const char *program, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s", program) >= PATH_MAX)
        return false;
    for (int i = 0; i < SCRIPTS_MAX && script_follow(path); i++)
        ;
    return true;
}

/* The kernel makes the loader careful (AT_SECURE) when the program gets rights that we lack. */
static bool gets_rights(int fd, const struct stat *st, const char **ret_what)
{
    struct statvfs fs;
    char caps[64];
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
        return false;
    if ((st->st_mode & S_ISUID) && st->st_uid != geteuid()) {
        *ret_what = "set-user-ID";
        return true;
    }
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getegid()) {
        *ret_what = "set-group-ID";
        return true;
    }
    if (geteuid() != 0 && fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0) {
        *ret_what = "given capabilities by its file";
        return true;
    }
    return false;
}

/* PT_INTERP; false: there is none. */
static bool loader_read(Elf *elf, int fd, char *loader, size_t size)
{
    size_t count = 0;
    if (elf_getphdrnum(elf, &count) < 0)
        return false;
    for (size_t i = 0; i < MIN(count, (size_t)INT_MAX); i++) {
        GElf_Phdr part;
        if (!gelf_getphdr(elf, (int)i, &part) || part.p_type != PT_INTERP)
            continue;
        size_t len = MIN((size_t)part.p_filesz, size - 1);
        ssize_t n = pread(fd, loader, len, (off_t)part.p_offset);
        loader[n > 0 ? n : 0] = '\0';
        return true;
    }
    return false;
}

static bool is_function(const GElf_Sym *symbol)
{
    return (GELF_ST_TYPE(symbol->st_info) == STT_FUNC ||
            GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) &&
           GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
}

/* Defines a function of that name, or (`wants`) needs one of another's. */
static bool table_has(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *wanted,
                      bool wants)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 0; i < MIN(count, (size_t)SYMBOLS_MAX); i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || (symbol.st_shndx == SHN_UNDEF) != wants ||
            !is_function(&symbol))
            continue;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static bool has(Elf *elf, const char *wanted, bool wants)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
            table_has(elf, section, &header, wanted, wants))
            return true;
    }
    return false;
}

static bool is_sanitized(Elf *elf)
{
    static const char *const runtimes[] = {"__asan_init", "__tsan_init", "__msan_init",
                                           "__hwasan_init"};
    for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
        if (has(elf, runtimes[i], true) || has(elf, runtimes[i], false))
            return true;
    return false;
}

/* NULL: nothing stands in the way. */
static const char *elf_refuses(int fd, char *loader, size_t loader_size)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    GElf_Ehdr header;
    const char *why = NULL;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
        why = "is no ELF program";
    else if (header.e_machine != MACHINE_HERE || gelf_getclass(elf) != ELFCLASS64)
        why = "is for another machine than whyslow's library";
    else if (!loader_read(elf, fd, loader, loader_size))
        why = "is linked statically, so that no loader puts a library into it";
    else if (strstr(loader, "musl"))
        why = "is linked with musl, the library with glibc";
    else if (!strstr(loader, "ld-linux"))
        why = "has a loader that is not glibc's";
    else if (is_sanitized(elf))
        why = "is built with a sanitizer, which has to be the first to see its memory";
    else if (has(elf, "malloc", false)) /* the program stands before every library */
        why = "has a malloc() of its own, which is called past every library";
    elf_end(elf);
    return why;
}

bool preload_heap_fits(const char *program, char *why, size_t why_size)
{
    char path[PATH_MAX], loader[128] = "";
    struct stat st;
    const char *what = NULL;
    if (!program_resolve(program, path)) {
        snprintf(why, why_size, "the path is too long");
        return false;
    }
    AUTO(fd_close) int fd = file_open_regular(path);
    if (fd < 0 || fstat(fd, &st) < 0) {
        if (fd == -EACCES)
            return true; /* it may be run all the same, and mostly it fits */
        snprintf(why, why_size, "'%.200s' cannot be read: %s", path,
                 strerror(fd < 0 ? -fd : errno));
        return false;
    }
    if (gets_rights(fd, &st, &what)) {
        snprintf(why, why_size, "'%.200s' is %s: the loader ignores LD_PRELOAD", path, what);
        return false;
    }
    what = elf_refuses(fd, loader, sizeof(loader));
    if (what)
        snprintf(why, why_size, "'%.200s' %s", path, what);
    return !what;
}
