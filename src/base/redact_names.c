/* What is known of names of secrets and of keys. A new one is a row here. */
#include "base/redact_parts.h"

#include <ctype.h>

/* Compared in lower case with '-' and '.' as '_'. One that begins with '_' needs something
 * before it; ENDS: of any longer name, PART: the whole, or after a '_'. */
enum how { ENDS, PART };
static const struct {
    const char *name;
    enum how how;
    enum redact_name kind;
} names[] = {
    {"password", ENDS, REDACT_NAME_STRONG},
    {"passwd", ENDS, REDACT_NAME_STRONG},
    {"passphrase", ENDS, REDACT_NAME_STRONG},
    {"passcode", ENDS, REDACT_NAME_STRONG},
    {"_pass", ENDS, REDACT_NAME_STRONG},
    {"pass", ENDS, REDACT_NAME_WORD}, /* but for no_passes */
    {"pwd", ENDS, REDACT_NAME_STRONG},
    {"pw", PART, REDACT_NAME_WORD},
    {"psk", PART, REDACT_NAME_WORD},
    {"secret", ENDS, REDACT_NAME_STRONG},
    {"token", ENDS, REDACT_NAME_STRONG},
    {"bearer", PART, REDACT_NAME_STRONG},
    {"authorization", ENDS, REDACT_NAME_STRONG},
    {"cookie", ENDS, REDACT_NAME_STRONG},
    {"credential", ENDS, REDACT_NAME_STRONG},
    {"credentials", ENDS, REDACT_NAME_STRONG},
    {"apikey", ENDS, REDACT_NAME_STRONG},
    {"api_key", ENDS, REDACT_NAME_STRONG},
    {"accesskey", ENDS, REDACT_NAME_STRONG},
    {"access_key", ENDS, REDACT_NAME_STRONG},
    {"secretkey", ENDS, REDACT_NAME_STRONG},
    {"secret_key", ENDS, REDACT_NAME_STRONG},
    {"authkey", ENDS, REDACT_NAME_STRONG},
    {"auth_key", ENDS, REDACT_NAME_STRONG},
    {"signing_key", ENDS, REDACT_NAME_STRONG},
    {"encryption_key", ENDS, REDACT_NAME_STRONG},
    {"account_key", ENDS, REDACT_NAME_STRONG},
    {"accountkey", ENDS, REDACT_NAME_STRONG},
    {"connection_string", ENDS, REDACT_NAME_STRONG},
    {"private_key", ENDS, REDACT_NAME_FILE},
    {"privatekey", ENDS, REDACT_NAME_FILE},
    {"preshared_key", ENDS, REDACT_NAME_FILE},
    {"jwt_signing", ENDS, REDACT_NAME_WEAK},
    {"secret_id", PART, REDACT_NAME_WEAK},
    {"webhook_url", PART, REDACT_NAME_WEAK},
    {"slack_webhook", PART, REDACT_NAME_WEAK},
    {"discord_webhook", PART, REDACT_NAME_WEAK},
    {"auth", PART, REDACT_NAME_PAIR},
    {"oauth", PART, REDACT_NAME_WEAK},
    {"jwt", PART, REDACT_NAME_WORD},
    {"session", PART, REDACT_NAME_WEAK},
    {"session_id", PART, REDACT_NAME_WEAK},
    {"sessionid", PART, REDACT_NAME_WEAK},
    {"sessid", ENDS, REDACT_NAME_WEAK},
    {"sid", PART, REDACT_NAME_WEAK},
    {"sig", PART, REDACT_NAME_WEAK},
    {"signature", PART, REDACT_NAME_WEAK},
    {"hmac", PART, REDACT_NAME_WEAK},
    {"csrf", PART, REDACT_NAME_WEAK},
    {"xsrf", PART, REDACT_NAME_WEAK},
    {"otp", PART, REDACT_NAME_WORD},
    {"totp", PART, REDACT_NAME_WORD},
    {"otp_code", PART, REDACT_NAME_WORD},
};

/* What may stand behind the name of a secret: SECRET_KEY_BASE. Not "type", "file", "url", "ttl". */
static const char *const name_tails[] = {
    "_base",    "_value",    "_plain", "_raw",      "_old",    "_new",
    "_prev",    "_previous", "_main",  "_prod",     "_b64",    "_production",
    "_staging", "_base64",   "_hex",   "_fallback", "_backup",
};

/* NAME_KEY=value of an environment: ends of names, and what is no secret in front of them. */
static const char *const env_ends[] = {"_KEY", "_SK", "_PAT"};
static const char env_public[] =
    "PRIMARY SORT FOREIGN PARTITION PUBLIC UNIQUE CACHE HOT GPG PGP SHARD GROUP ROUTING INDEX MAP "
    "LOOKUP OBJECT S3 ROW COLUMN HASH RANGE DICT JSON REGISTRY SUMMARY ORDER JOIN BUCKET STATE "
    "LOCK "
    "MODIFIER NEXT DELETE ENTER ESC TAB ANY REDIS FILE QUEUE TOPIC MESSAGE EVENT METRIC FEATURE "
    "FLAG "
    "CONFIG ISSUE PROJECT SITE TRANSLATION LABEL SEARCH FILTER META HOST BUILD";

/* Names may end with these, too, and are no secret's for it. */
static const char *const no_passes[] = {
    "bypass",    "compass",    "surpass",   "trespass",   "overpass", "underpass",
    "lowpass",   "highpass",   "bandpass",  "allpass",    "onepass",  "twopass",
    "multipass", "singlepass", "firstpass", "renderpass", "subpass",  "prepass",
};

/* What issuers of keys begin them with, and how long the rest is at least. */
static const struct {
    const char *prefix;
    size_t rest_min;
} keys[] = {
    {"AKIA", 16},     {"ASIA", 16},     {"ghp_", 20},        {"gho_", 20},     {"ghu_", 20},
    {"ghs_", 20},     {"ghr_", 20},     {"github_pat_", 20}, {"glpat-", 16},   {"xoxb-", 10},
    {"xoxp-", 10},    {"xoxa-", 10},    {"xoxs-", 10},       {"xapp-", 10},    {"sk-ant-", 20},
    {"sk_live_", 10}, {"sk_test_", 10}, {"rk_live_", 10},    {"rk_test_", 10}, {"whsec_", 16},
    {"AIza", 30},     {"ya29.", 16},    {"npm_", 30},        {"pypi-", 30},    {"hf_", 30},
    {"dop_v1_", 30},  {"hvs.", 20},     {"SG.", 30},         {"eyJ", 20}, /* base64 of '{"': a JSON
                                                                             web token */
};

/* Addresses whose path lets somebody in. */
static const char *const places[] = {
    "hooks.slack.com/services/",    "hooks.slack.com/workflows/",  "hooks.slack.com/triggers/",
    "api.telegram.org/bot",         "api.telegram.org/file/bot",   "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/", "outlook.office.com/webhook/",
};

/* Of a name in lower case, with '_'. */
static enum redact_name kind_of(struct str name, bool whole)
{
    enum redact_name found = REDACT_NAME_PLAIN;
    for (size_t i = 0; i < ARRAY_SIZE(no_passes); i++)
        if (str_ends(name, no_passes[i]))
            return REDACT_NAME_PLAIN;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t len = strlen(names[i].name);
        if (!str_ends(name, names[i].name) || (names[i].how == PART && !whole))
            continue;
        if (names[i].how == PART && name.len > len && name.data[name.len - len - 1] != '_')
            continue;
        found = MAX(found, names[i].kind);
    }
    return found;
}

/* The same without what may stand behind it: MYSQL_PASS1, APP_SECRET_V2, SECRET_KEY_BASE. */
static enum redact_name kind_of_begin(struct str name)
{
    enum { DIGITS_MAX = 2 };
    size_t digits = 0;
    while (digits < name.len && isdigit((unsigned char)name.data[name.len - digits - 1]))
        digits++;
    if (digits > 0 && digits <= DIGITS_MAX) {
        name.len -= digits;
        if (str_ends(name, "_v"))
            name.len -= 2;
        else if (str_ends(name, "_"))
            name.len--;
        return MIN(kind_of(name, false), REDACT_NAME_WORD);
    }
    for (size_t i = 0; i < ARRAY_SIZE(name_tails); i++)
        if (str_ends(name, name_tails[i]))
            return MIN(kind_of((struct str){name.data, name.len - strlen(name_tails[i])}, false),
                       REDACT_NAME_WEAK);
    return REDACT_NAME_PLAIN;
}

enum redact_name redact_name_kind(struct str name)
{
    enum { NAME_BYTES_MAX = 64 };
    char text[NAME_BYTES_MAX];
    while (name.len > 0 && !isalnum((unsigned char)name.data[0])) {
        name.data++;
        name.len--;
    }
    if (str_is(name, "PWD") || str_is(name, "OLDPWD"))
        return REDACT_NAME_PLAIN; /* a shell's folder */
    if (str_is(name, "wpa-psk") || str_is(name, "secret-id"))
        return REDACT_NAME_PLAIN;  /* a way to make keys, the name of a secret */
    if (name.len > sizeof(text)) { /* it ends like its end */
        name.data += name.len - sizeof(text);
        name.len = sizeof(text);
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        text[i] = c == '-' || c == '.' ? '_' : (char)tolower((unsigned char)c);
    }
    enum redact_name found = kind_of((struct str){text, name.len}, true);
    return found != REDACT_NAME_PLAIN ? found : kind_of_begin((struct str){text, name.len});
}

bool redact_is_secret_name(struct str name)
{
    return redact_name_kind(name) != REDACT_NAME_PLAIN;
}

/* "SENDGRID_KEY", not "PRIMARY_KEY": all capitals. */
static bool is_env_name(struct str name)
{
    size_t end = 0;
    for (size_t i = 0; i < name.len; i++)
        if (!isupper((unsigned char)name.data[i]) && !isdigit((unsigned char)name.data[i]) &&
            name.data[i] != '_')
            return false;
    for (size_t i = 0; i < ARRAY_SIZE(env_ends); i++)
        if (str_ends(name, env_ends[i]))
            end = strlen(env_ends[i]);
    if (end == 0 || name.len <= end)
        return false;
    struct str rest = {name.data, name.len - end};
    const char *last = memrchr(rest.data, '_', rest.len);
    size_t skip = last ? (size_t)(last + 1 - rest.data) : 0;
    return !redact_list_has(env_public, (struct str){rest.data + skip, rest.len - skip});
}

/* ".pem": a dot and few letters. */
static bool has_extension(struct str text)
{
    enum { LETTERS_MAX = 5 };
    const char *dot = memrchr(text.data, '.', text.len);
    size_t at = dot ? (size_t)(dot + 1 - text.data) : text.len, start = at;
    while (at < text.len && isalpha((unsigned char)text.data[at]))
        at++;
    return at == text.len && at > start && at - start <= LETTERS_MAX;
}

bool redact_is_keylike(struct str text)
{
    enum { LOOK_BYTES_MAX = 64, LEN_MIN = 8, LONG = 20, LONG_WITH_SLASH = 40 };
    size_t len = 0, lower = 0, upper = 0, digits = 0;
    while (text.len > 0 && strchr("\\\"'", text.data[0])) {
        text.data++;
        text.len--;
    }
    if (str_starts(text, "-----BEGIN"))
        return true;
    if (text.len == 0 || strchr("/.~$<[%{-(`", text.data[0]) || str_starts(text, "id_"))
        return false;
    for (; len < MIN(text.len, LOOK_BYTES_MAX); len++) {
        unsigned char c = (unsigned char)text.data[len];
        if (c == '\0' || strchr("&;=[\"'` \t\n\\|<>,", c))
            break;
        lower += islower(c) != 0;
        upper += isupper(c) != 0;
        digits += isdigit(c) != 0;
    }
    text.len = len;
    bool slash = memchr(text.data, '/', len) != NULL;
    if (len < LEN_MIN || has_extension(text) || (slash && len < LONG_WITH_SLASH) ||
        memmem(text.data, len, "://", 3))
        return false;
    return (digits > 0 && lower + upper > 0) || (len >= LONG && lower > 0 && upper > 0);
}

bool redact_is_secret_pair(struct str name, struct str value)
{
    return redact_is_secret_name(name) || (is_env_name(name) && redact_is_keylike(value));
}

size_t redact_place_len(struct str text)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (str_starts(text, places[i]))
            return strlen(places[i]);
    return 0;
}

bool redact_is_scheme(struct str word)
{
    return redact_list_has("Basic Bearer Digest Token Negotiate NTLM ApiKey AWS4-HMAC-SHA256 OAuth "
                           "SSWS GenieKey basic bearer digest token",
                           word);
}

static bool is_key_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

size_t redact_key_len(struct str text)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!str_starts(text, keys[i].prefix))
            continue;
        size_t len = strlen(keys[i].prefix), least = len + keys[i].rest_min;
        while (len < text.len && is_key_char(text.data[len]))
            len++;
        if (len >= least)
            return len;
    }
    return 0;
}
