/* What is known of options, names and keys. A new rule is a row here. */
#include "base/redact_parts.h"

#include <ctype.h>
#include <strings.h>

#define MYSQL "mysql* mariadb* mycli"
#define PG                                                                                         \
    "psql pgcli pg_* pgbench createdb dropdb createuser dropuser vacuumdb reindexdb clusterdb"
#define REDIS "redis-cli valkey-cli keydb-cli redis-benchmark valkey-benchmark"

const struct redact_rule redact_rules[] = {
    {"curl",
     "-u --user -U --proxy-user -b --cookie -E --cert --proxy-cert --pass --proxy-pass "
     "--oauth2-bearer --aws-sigv4",
     REDACT_VALUE},
    {"curl",
     "-d --data --data-raw --data-ascii --data-binary --data-urlencode --json -F --form "
     "--form-string",
     REDACT_BODY},
    {"curl", "-x --proxy --preproxy --url --socks4 --socks4a --socks5 --socks5-hostname",
     REDACT_USER},
    {"curl wget mysqlsh", "", REDACT_USER},
    {"mysqlsh", "--uri", REDACT_USER},
    {"wget", "--post-data --body-data", REDACT_BODY},
    {"http https xh hey", "-a --auth", REDACT_VALUE},
    {"hey oha", "-d", REDACT_BODY},
    {"ab", "-A -P -C", REDACT_VALUE},
    {MYSQL, "-p --password --password1 --password2 --password3", REDACT_BESIDE},
    {MYSQL, "-e --execute --init-command", REDACT_SQL},
    {PG, "-W --password -w --no-password", REDACT_FLAG},
    {"psql pgcli", "-c --command", REDACT_SQL},
    {"clickhouse*", "-q --query", REDACT_SQL},
    {"duckdb", "-c", REDACT_SQL},
    {"sqlite3 duckdb", "", REDACT_SQL},
    {"sqlcmd bcp isql tsql", "-P", REDACT_VALUE},
    {"cqlsh twine", "-p", REDACT_VALUE},
    {"ssh-keygen", "-N -P", REDACT_VALUE},
    {"sqlcmd", "-Q -q", REDACT_SQL},
    {REDIS, "-a --pass", REDACT_VALUE},
    {REDIS, "", REDACT_COMMAND},
    {"redis-server redis-sentinel valkey-server valkey-sentinel keydb-server",
     "--requirepass --masterauth --primaryauth", REDACT_VALUE},
    {"sqlplus sqlcl sqlldr expdp impdp rman", "", REDACT_LOGIN},
    {"mongo*", "-p --password", REDACT_VALUE},
    {"sshpass", "-p", REDACT_VALUE},
    {"ssh scp sftp rsync", "-p", REDACT_FLAG}, /* what sshpass starts */
    {"plink pscp psftp putty", "-pw", REDACT_VALUE},
    {"login", "-p", REDACT_VALUE}, /* docker login, podman login, az login */
    {"smbclient smbget rpcclient net mount.cifs", "-U --user", REDACT_VALUE},
    {"ldap*", "-w", REDACT_VALUE},
    {"lftp", "-u --user", REDACT_VALUE},
    {"7z 7za 7zr rar unrar", "-p -hp", REDACT_BESIDE},
    {"zip unzip", "-P", REDACT_VALUE},
    {"openssl", "-pass -passin -passout", REDACT_PHRASE},
    {"openssl", "-k -K -passwd -hmac -psk", REDACT_VALUE},
    {"openssl", "-macopt -pkeyopt -kdfopt -sigopt", REDACT_KEY},
    {"openssl", "-in -rand -writerand -provider -provider-path -propquery", REDACT_OTHER},
    {"vault", "-method -path -format -field -address -namespace", REDACT_OTHER},
    {"htpasswd", "-C -r", REDACT_OTHER},
    {"htpasswd", "-n", REDACT_FEWER},
    {"openssl vault htpasswd wpa_passphrase cargo", "", REDACT_COMMAND},
    {"useradd usermod", "-p --password", REDACT_VALUE},
    {"jq gojq jaq xsltproc nix-build nix-instantiate",
     "--arg --argjson --argstr --param --stringparam", REDACT_NAMED},
    /* aws configure set NAME WORD, npm config set NAME WORD */
    {"configure config nmcli", "", REDACT_NAMED},
    {"etcdctl", "--user", REDACT_VALUE},
    {"mosquitto_*", "-P", REDACT_VALUE},
    {"mosquitto_pub", "-m --message", REDACT_BODY},
    {"snmp*", "-A -X -c", REDACT_VALUE},
    {"ipmitool", "-P", REDACT_VALUE},
    {"influx", "-t", REDACT_VALUE},
    {NULL, NULL, 0},
};

/* Options without a value that are written together. */
static const struct {
    const char *programs, *letters;
} clusters[] = {
    {"curl", "#0123446BGIJLMNOSVafgijklnpqsv"},
    {MYSQL, "ABCEGHINUVbcfiLnoqrstvwX"},
    {"psql", "AEHLXabelnqstxz01"},
    {"zip unzip", "0123456789ACDFJKLMSTUVWXYZacefghjklmopqruvyz"},
    {"ldap*", "ACILMNQWZcntuvx"},
    {"htpasswd", "25BDbcdimpsv"},
    {"sudo", "ABEHKNPSVbeiklnsv"},
    {"ssh-keygen", "ABHKLQUXceghiklpquvy"},
};

/* Of redis-cli, what stands first is a key. */
static const struct redact_command commands[] = {
    {REDIS, "AUTH EVAL ECHO PING", 0, false, false},
    {REDIS,
     "HELLO ACL SET SETNX GETSET MSET MSETNX APPEND LPUSH RPUSH LPUSHX RPUSHX SADD ZADD XADD "
     "PUBLISH LINSERT PFADD GEOADD SPUBLISH RESTORE",
     1, false, false},
    {REDIS, "CONFIG MIGRATE SETEX PSETEX SETRANGE HSET HMSET HSETNX LSET", 2, false, false},
    {"openssl", "passwd", 0, true, false},
    {"vault", "login", 0, true, true},
    {"cargo", "login", 0, true, false},
    {"htpasswd", NULL, 2, false, false}, /* FILE USER, with -n USER */
    {"wpa_passphrase", NULL, 1, false, false},
};

/* Who reads a secret from standard input: with these options, and one of these words behind. */
static const struct {
    const char *programs, *options, *values;
} readers[] = {
    {"*", "--password-stdin --passphrase-stdin --token-stdin --with-token", NULL},
    {"*", "-pass -passin -passout", "stdin fd:0"},
    {"*", "--passphrase-fd --password-fd", "0"},
    {"sudo", "-S --stdin", NULL},
    {"passwd", "--stdin", NULL},
};

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
    {"private_key", ENDS, REDACT_NAME_WEAK}, /* as an option: the name of a file */
    {"privatekey", ENDS, REDACT_NAME_WEAK},
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
};

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

static bool list_has(const char *list, struct str word, bool stars)
{
    struct str rest = str_from(list);
    while (rest.len > 0) {
        struct str item = str_cut(&rest, ' ');
        bool star = stars && item.len > 0 && item.data[item.len - 1] == '*';
        size_t len = item.len - star;
        if (word.len >= len && (star || word.len == len) &&
            (len == 0 || memcmp(word.data, item.data, len) == 0))
            return true;
    }
    return false;
}

static bool list_has_any_case(const char *list, struct str word)
{
    struct str rest = str_from(list);
    while (rest.len > 0) {
        struct str item = str_cut(&rest, ' ');
        if (word.len == item.len && strncasecmp(word.data, item.data, item.len) == 0)
            return true;
    }
    return false;
}

bool redact_program_matches(const char *programs, struct str program)
{
    return list_has(programs, program, true);
}

bool redact_program_is_known(struct str program)
{
    if (program.len == 0)
        return false;
    for (const struct redact_rule *rule = redact_rules; rule->programs; rule++)
        if (redact_program_matches(rule->programs, program))
            return true;
    return false;
}

const char *redact_flags_of(struct str program)
{
    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++)
        if (redact_program_matches(clusters[i].programs, program))
            return clusters[i].letters;
    return NULL;
}

const struct redact_command *redact_command(struct str program, struct str word, struct str last)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        const char *list = commands[i].names;
        if (!redact_program_matches(commands[i].programs, program))
            continue;
        bool named = list && list_has_any_case(list, word);
        if (!list || (named && (!commands[i].first || str_ends(last, commands[i].programs))))
            return &commands[i];
    }
    return NULL;
}

bool redact_reads_secret(struct str program, struct str option, struct str value)
{
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        if (redact_program_matches(readers[i].programs, program) &&
            list_has(readers[i].options, option, false) &&
            (!readers[i].values || list_has(readers[i].values, value, false)))
            return true;
    return false;
}

bool redact_is_key_option(struct str name)
{
    return list_has("key hexkey pass hexpass secret hexsecret", name, false);
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
    if (str_is(name, "wpa-psk"))
        return REDACT_NAME_PLAIN;  /* a way to make keys */
    if (name.len > sizeof(text)) { /* it ends like its end */
        name.data += name.len - sizeof(text);
        name.len = sizeof(text);
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        text[i] = c == '-' || c == '.' ? '_' : (char)tolower((unsigned char)c);
    }
    for (size_t i = 0; i < ARRAY_SIZE(no_passes); i++)
        if (str_ends((struct str){text, name.len}, no_passes[i]))
            return REDACT_NAME_PLAIN;
    enum redact_name found = REDACT_NAME_PLAIN;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t len = strlen(names[i].name);
        if (name.len < len || memcmp(text + name.len - len, names[i].name, len) != 0)
            continue;
        if (names[i].how == PART && name.len > len && text[name.len - len - 1] != '_')
            continue;
        found = MAX(found, names[i].kind);
    }
    return found;
}

bool redact_is_secret_name(struct str name)
{
    return redact_name_kind(name) != REDACT_NAME_PLAIN;
}

bool redact_is_scheme(struct str word)
{
    return list_has("Basic Bearer Digest Token Negotiate NTLM ApiKey AWS4-HMAC-SHA256 OAuth SSWS "
                    "GenieKey basic bearer digest token",
                    word, false);
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
