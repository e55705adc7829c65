/* Promises of base/jsonw.h; what it writes is read back by jansson. */
#include "unit.h"

#include "base/jsonw.h"
#include "capture.h"

#include <jansson.h>
#include <math.h>

static void nesting_commas_and_indentation(void **state)
{
    (void)state;
    struct capture capture;
    capture_begin(&capture);
    struct jsonw json;
    jsonw_init(&json, capture.out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "a");
    jsonw_array_begin(&json);
    jsonw_u64(&json, 1);
    jsonw_bool(&json, true);
    jsonw_null(&json);
    jsonw_array_end(&json);
    jsonw_key(&json, "b");
    jsonw_object_begin(&json);
    jsonw_object_end(&json);
    jsonw_key(&json, "c");
    jsonw_i64(&json, -5);
    jsonw_object_end(&json);
    assert_string_equal(capture_text(&capture), "{\"a\":[1,true,null],\"b\":{},\"c\":-5}");
    capture_end(&capture);
}

static void indented_output_is_the_same_json(void **state)
{
    (void)state;
    struct capture capture;
    capture_begin(&capture);
    struct jsonw json;
    jsonw_init(&json, capture.out, 2);
    jsonw_object_begin(&json);
    jsonw_key(&json, "list");
    jsonw_array_begin(&json);
    jsonw_array_end(&json);
    jsonw_key(&json, "x");
    jsonw_text(&json, STR("y"));
    jsonw_object_end(&json);
    assert_string_equal(capture_text(&capture), "{\n  \"list\": [],\n  \"x\": \"y\"\n}");
    capture_end(&capture);
}

static void every_byte_string_becomes_valid_json(void **state)
{
    (void)state;
    char bytes[256 * 3];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 256);
    struct capture capture;
    capture_begin(&capture);
    struct jsonw json;
    jsonw_init(&json, capture.out, 0);
    jsonw_array_begin(&json);
    jsonw_text(&json, (struct str){bytes, sizeof(bytes)});
    jsonw_array_end(&json);
    json_error_t error;
    json_t *read = json_loads(capture_text(&capture), JSON_ALLOW_NUL, &error);
    assert_non_null(read);
    assert_null(strchr(capture.text, '<')); /* safe inside <script> */
    json_decref(read);
    capture_end(&capture);
}

static void text_survives_a_round_trip(void **state)
{
    (void)state;
    const char *text = "quote \" back \\ slash / tab \t nl \n <b>&amp; ü 数 \x7f";
    struct capture capture;
    capture_begin(&capture);
    struct jsonw json;
    jsonw_init(&json, capture.out, 0);
    jsonw_array_begin(&json);
    jsonw_text(&json, str_from(text));
    jsonw_array_end(&json);
    json_t *read = json_loads(capture_text(&capture), 0, NULL);
    assert_non_null(read);
    assert_string_equal(json_string_value(json_array_get(read, 0)), text);
    json_decref(read);
    capture_end(&capture);
}

static void numbers_read_back_as_the_same_number(void **state)
{
    (void)state;
    static const double numbers[] = {0, 1, -1.5, 0.1, 1.0 / 3, 1e300, 5e-324, 123456789.125};
    struct capture capture;
    capture_begin(&capture);
    struct jsonw json;
    jsonw_init(&json, capture.out, 0);
    jsonw_array_begin(&json);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        jsonw_f64(&json, numbers[i]);
    jsonw_f64(&json, NAN);
    jsonw_f64(&json, INFINITY);
    jsonw_u64(&json, UINT64_MAX);
    jsonw_array_end(&json);
    assert_non_null(strstr(capture_text(&capture), ",null,null,18446744073709551615]"));
    capture.text[strlen(capture.text) - strlen(",18446744073709551615]")] = ']';
    json_t *read = json_loads(capture.text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(read);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        assert_true(json_number_value(json_array_get(read, i)) == numbers[i]);
    json_decref(read);
    capture_end(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_commas_and_indentation),
        cmocka_unit_test(indented_output_is_the_same_json),
        cmocka_unit_test(every_byte_string_becomes_valid_json),
        cmocka_unit_test(text_survives_a_round_trip),
        cmocka_unit_test(numbers_read_back_as_the_same_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
