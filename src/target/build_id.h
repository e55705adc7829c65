/* The build-id of an ELF file: what tells two files of one name apart. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

enum { BUILD_ID_BYTES_MAX = 64 };

/* Its length; 0 when the file has none; -EBADMSG when it is no ELF file or is damaged. */
MUST_USE int build_id_read(int fd, uint8_t ret[BUILD_ID_BYTES_MAX]);
/* Lower-case hex with a NUL. */
void build_id_format(const uint8_t *id, size_t len, char text[2 * BUILD_ID_BYTES_MAX + 1]);
