/* Go writes down how it built: .go.buildinfo holds the version, the modules and
 * the build settings. Go 1.18 and later keep the texts in the section itself;
 * older ones point at them. */
#include "host/build_internal.h"

enum { GO_TEXT_BYTES_MAX = 1 << 20 };

static bool go_text(struct str *rest, struct str *ret)
{
    uint64_t len = 0;
    unsigned shift = 0;
    for (;;) {
        if (rest->len == 0 || shift > 28)
            return false;
        unsigned char byte = (unsigned char)rest->data[0];
        rest->data++;
        rest->len--;
        len |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            break;
    }
    if (len > rest->len || len > GO_TEXT_BYTES_MAX)
        return false;
    *ret = (struct str){rest->data, len};
    rest->data += len;
    rest->len -= len;
    return true;
}

/* The bytes at an address of the loaded program. */
static struct str at_address(struct build_elf *file, uint64_t address, uint64_t size)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0)
        count = 0;
    size_t raw_size = 0;
    const char *raw = elf_rawfile(file->elf, &raw_size);
    for (size_t i = 0; raw && i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(file->elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
            address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
            continue;
        uint64_t skip = address - segment.p_vaddr;
        uint64_t offset = segment.p_offset + skip;
        if (size <= segment.p_filesz - skip && offset <= raw_size && size <= raw_size - offset)
            return (struct str){raw + offset, size};
    }
    return (struct str){"", 0};
}

static uint64_t read_u64(struct str bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; bytes.len >= 8 && i < 8; i++)
        number |= (uint64_t)(unsigned char)bytes.data[i] << (8 * i);
    return number;
}

/* Before Go 1.18: the address of a Go string, itself an address and a length. */
static struct str go_string_at(struct build_elf *file, uint64_t address)
{
    struct str header = at_address(file, address, 16);
    if (header.len < 16)
        return (struct str){"", 0};
    uint64_t len = read_u64((struct str){header.data + 8, 8});
    if (len > GO_TEXT_BYTES_MAX)
        return (struct str){"", 0};
    return at_address(file, read_u64(header), len);
}

void build_go_read(struct build_elf *file, struct build_go *ret)
{
    static const char magic[] = "\xff Go buildinf:";
    enum { MAGIC_BYTES = 14, HEADER_BYTES = 32 };
    *ret = (struct build_go){.version = "", .settings = ""};
    struct str bytes = build_elf_bytes(file, ".go.buildinfo");
    if (bytes.len == 0) {
        ret->found = build_elf_bytes(file, ".note.go.buildid").len > 0 ||
                     build_elf_bytes(file, ".gopclntab").len > 0;
        return;
    }
    ret->found = true;
    if (bytes.len < HEADER_BYTES || memcmp(bytes.data, magic, MAGIC_BYTES) != 0)
        return;
    unsigned char flags = (unsigned char)bytes.data[15];
    struct str version = {"", 0};
    struct str modules = {"", 0};
    if (flags & 2) {
        struct str rest = {bytes.data + HEADER_BYTES, bytes.len - HEADER_BYTES};
        if (!go_text(&rest, &version) || !go_text(&rest, &modules))
            return;
    } else if (!(flags & 1) && bytes.data[14] == 8) {
        version = go_string_at(file, read_u64((struct str){bytes.data + 16, 8}));
        modules = go_string_at(file, read_u64((struct str){bytes.data + 24, 8}));
    }
    /* The module text stands between two marks of 16 bytes that help to find it in memory. */
    if (modules.len >= 33) {
        modules.data += 16;
        modules.len -= 32;
    }
    ret->version = arena_dup_len(file->arena, version.data, version.len);
    ret->settings = arena_dup_len(file->arena, modules.data, modules.len);
}

const char *build_go_setting(struct arena *arena, const struct build_go *go, const char *key)
{
    struct str rest = str_from(go->settings);
    const char *prefix = arena_printf(arena, "build\t%s=", key);
    while (rest.len > 0) {
        struct str line = str_cut(&rest, '\n');
        if (!str_starts(line, prefix))
            continue;
        struct str value = {line.data + strlen(prefix), line.len - strlen(prefix)};
        if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
            value = (struct str){value.data + 1, value.len - 2};
        return arena_dup_len(arena, value.data, value.len);
    }
    return "";
}
