/* Promises of base/sha256.h, with the answers FIPS 180-4 gives. */
#include "unit.h"

#include "base/sha256.h"

static void check(const char *text, size_t times, size_t piece, const char *expected)
{
    struct sha256 hash;
    sha256_init(&hash);
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < strlen(text); at += piece) {
            size_t left = strlen(text) - at;
            sha256_add(&hash, text + at, left < piece ? left : piece);
        }
    char hex[SHA256_TEXT_BYTES];
    sha256_finish(&hash, hex);
    assert_string_equal(hex, expected);
}

static void known_answers(void **state)
{
    (void)state;
    check("", 1, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 1, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 56,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check("a", 1000000, 1, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void the_way_the_text_is_cut_does_not_matter(void **state)
{
    (void)state;
    static const char text[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct sha256 hash;
    char whole[SHA256_TEXT_BYTES];
    sha256_init(&hash);
    sha256_add(&hash, text, strlen(text));
    sha256_finish(&hash, whole);
    for (size_t piece = 1; piece <= strlen(text); piece++)
        check(text, 1, piece, whole);
}

static void machines_with_and_without_instructions_for_it_agree(void **state)
{
    (void)state;
    uint8_t blocks[64 * 37];
    for (size_t i = 0; i < sizeof(blocks); i++)
        blocks[i] = (uint8_t)(i * i + i / 7);
    struct sha256 hash;
    sha256_init(&hash);
    uint32_t state_words[8];
    memcpy(state_words, hash.state, sizeof(state_words));
    sha256_add(&hash, blocks, sizeof(blocks));
    sha256_blocks_plain(state_words, blocks, 37);
    assert_memory_equal(hash.state, state_words, sizeof(state_words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(the_way_the_text_is_cut_does_not_matter),
        cmocka_unit_test(machines_with_and_without_instructions_for_it_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
