/* Mended: eight bytes at a time, from tables made once. */
#include "ledger.h"

#include <string.h>

uint32_t decode_payload(const char *data, size_t len)
{
    static uint32_t tables[8][256];
    if (tables[0][1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t crc = i;
            for (int bit = 0; bit < 8; bit++)
                crc = crc & 1 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
            tables[0][i] = crc;
        }
        for (int t = 1; t < 8; t++)
            for (uint32_t i = 0; i < 256; i++)
                tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    }
    uint32_t crc = 0xffffffffu;
    for (; len >= 8; len -= 8, data += 8) {
        uint32_t low, high;
        memcpy(&low, data, 4);
        memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ tables[0][(crc ^ (unsigned char)data[i]) & 0xff];
    return ~crc;
}
