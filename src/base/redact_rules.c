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
    {"curl", "-K --config", REDACT_FROM},
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
    {"cqlsh twine beeline mutool ncftp* rabbitmqadmin", "-p", REDACT_VALUE},
    {"ssh-keygen", "-N -P", REDACT_VALUE},
    {"sqlcmd", "-Q -q", REDACT_SQL},
    {REDIS, "-a --pass", REDACT_VALUE},
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
    {"lftp open", "-u --user", REDACT_VALUE}, /* lftp -e "open -u …" */
    {"7z 7za 7zr rar unrar", "-p -hp", REDACT_BESIDE},
    {"zip unzip", "-P", REDACT_VALUE},
    {"openssl", "-pass -passin -passout", REDACT_PHRASE},
    {"openssl", "-k -K -passwd -hmac -psk", REDACT_VALUE},
    {"openssl", "-macopt -pkeyopt -kdfopt -sigopt", REDACT_KEY},
    {"openssl", "-in -rand -writerand -provider -provider-path -propquery", REDACT_OTHER},
    {"vault", "-method -path -format -field -address -namespace -mount -cas", REDACT_OTHER},
    {"htpasswd", "-C -r", REDACT_OTHER},
    {"htpasswd", "-n", REDACT_FEWER},
    {"useradd usermod", "-p --password", REDACT_VALUE},
    {"jq gojq jaq xsltproc nix-build nix-instantiate",
     "--arg --argjson --argstr --param --stringparam", REDACT_NAMED},
    /* aws configure set NAME WORD, npm config set NAME WORD, npm set NAME WORD */
    {"configure config set nmcli pdftk wg", "", REDACT_NAMED},
    {"config", "--global --local --system --worktree --add --replace-all -g --user", REDACT_FLAG},
    {"etcdctl", "--user", REDACT_VALUE},
    {"mosquitto_*", "-P", REDACT_VALUE},
    {"mosquitto_pub", "-m --message", REDACT_BODY},
    {"snmp*", "-A -X -c", REDACT_VALUE},
    {"ipmitool", "-P", REDACT_VALUE},
    {"influx", "-t", REDACT_VALUE},
    {"generic", "--from-literal", REDACT_ASSIGN}, /* kubectl create secret generic */
    {"secret", "-b --body", REDACT_VALUE},        /* gh secret set */
    {"secretsmanager", "--secret-string --secret-binary", REDACT_BODY},
    {"put-parameter", "--value", REDACT_BODY},
    {"keyvault", "--value", REDACT_VALUE},
    {"pdftoppm pdftotext pdfinfo pdfimages pdftocairo pdftohtml pdffonts pdfdetach pdftops",
     "-upw -opw", REDACT_VALUE},
    {"ffmpeg ffplay ffprobe", "-decryption_key", REDACT_VALUE},
    {"qpdf", "--encrypt", REDACT_TWO},
    {"swaks", "-ap", REDACT_VALUE},
    {"yt-dlp youtube-dl", "-p -2 --twofactor", REDACT_VALUE},
    {"xfreerdp* wlfreerdp*", "/p: /gp: /pth:", REDACT_JOINED},
    {"rdesktop xfreerdp*", "-p", REDACT_VALUE},
    {"bw", "--session --code", REDACT_VALUE},
    {"bw", "--method --passwordenv --passwordfile", REDACT_OTHER},
    {"mkpasswd", "-m --method -S --salt -R --rounds -P --password-fd", REDACT_OTHER},
    {"oathtool", "--totp --hotp", REDACT_FLAG},
    {"oathtool",
     "-c --counter -d --digits -w --window -s --time-step-size -S --start-time -N --now",
     REDACT_OTHER},
    {"rabbitmqctl", "-n --node -t --timeout -p --vhost", REDACT_OTHER},
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

/* Words that are programs of their own only behind these: "gh secret". */
static const struct {
    const char *word, *behind;
} subcommands[] = {
    {"secret", "gh"},
    {"set", "npm pnpm yarn"},
    {"generic", "secret"},
    {"open", ""},
};

/* Of redis-cli, what stands first is a key. */
static const struct redact_command commands[] = {
    {REDIS, "AUTH EVAL ECHO PING", .shown = 0},
    {REDIS,
     "HELLO ACL SET SETNX GETSET MSET MSETNX APPEND LPUSH RPUSH LPUSHX RPUSHX SADD ZADD XADD "
     "PUBLISH LINSERT PFADD GEOADD SPUBLISH RESTORE",
     .shown = 1},
    {REDIS, "CONFIG MIGRATE SETEX PSETEX SETRANGE HSET HMSET HSETNX LSET", .shown = 2},
    {"openssl", "passwd", .behind = "openssl"},
    {"vault", "login", .behind = "vault", .pairs = true},
    {"vault", "unseal", .behind = "operator", .hides = 1},
    {"vault", "put patch", .behind = "kv", .shown = 1, .kind = REDACT_ASSIGN},
    {"cargo", "login", .behind = "cargo"},
    {"htpasswd", NULL, .shown = 2}, /* FILE USER, with -n USER */
    {"wpa_passphrase", NULL, .shown = 1},
    {"isql iusql", NULL, .shown = 2}, /* DSN USER WORD */
    {"mkpasswd oathtool", NULL, .shown = 0},
    {"mysqladmin mariadb-admin", "password", .hides = 1},
    {"rabbitmqctl", "add_user change_password authenticate_user", .shown = 1, .hides = 1},
    {"mc mcli", "set", .behind = "alias", .shown = 3, .hides = 1}, /* NAME URL KEY */
    {"mc mcli", "add", .behind = "host", .shown = 3, .hides = 1},
    {"bw", "unlock", .behind = "bw", .hides = 1},
    {"bw", "login", .behind = "bw", .shown = 1, .hides = 1},
    /* poetry config pypi-token.pypi WORD, composer config http-basic.host USER WORD */
    {"config", "http-basic.*", .shown = 1, .hides = 1},
    {"config", "pypi-token.* github-oauth.* gitlab-token.* gitlab-oauth.* bearer.*", .hides = 1},
};

#define SQL_READERS                                                                                \
    "psql pgcli mysql mariadb mycli mysqlsh sqlite3 duckdb clickhouse clickhouse-client sqlcmd "   \
    "sqlplus sqlcl cqlsh"

/* Who reads a secret, or statements, from standard input: with these options, and one of these
 * words behind. Options NULL: without any. */
static const struct {
    const char *programs, *options, *values;
    enum redact_kind kind;
} readers[] = {
    {"*", "--password-stdin --passphrase-stdin --token-stdin --with-token", NULL, REDACT_VALUE},
    {"*", "-pass -passin -passout", "stdin fd:0", REDACT_VALUE},
    {"*", "--passphrase-fd --password-fd", "0", REDACT_VALUE},
    {"curl", "-K --config", "-", REDACT_VALUE},
    {"sudo", "-S --stdin", NULL, REDACT_VALUE},
    {"passwd chpasswd chgpasswd smbpasswd cryptsetup kinit", NULL, NULL, REDACT_VALUE},
    {SQL_READERS, NULL, NULL, REDACT_SQL},
};

/* Programs that start another, behind so many operands: docker exec NAME … */
static const struct {
    const char *programs;
    unsigned operands;
} starters[] = {
    {"sudo doas env nice nohup exec command stdbuf setsid", 0},
    {"timeout chroot ssh", 1},
    {"docker podman nerdctl kubectl oc", 2},
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

bool redact_list_has(const char *list, struct str word)
{
    return list_has(list, word, false);
}

/* In any case; "name*" is for all that begin so. */
static bool list_has_any_case(const char *list, struct str word)
{
    struct str rest = str_from(list);
    while (rest.len > 0) {
        struct str item = str_cut(&rest, ' ');
        bool star = str_ends(item, "*");
        size_t len = item.len - star;
        if (word.len >= len && (star || word.len == len) &&
            strncasecmp(word.data, item.data, len) == 0)
            return true;
    }
    return false;
}

bool redact_program_matches(const char *programs, struct str program)
{
    return list_has(programs, program, true);
}

bool redact_program_is_known(struct str program, struct str last)
{
    if (program.len == 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++)
        if (str_is(program, subcommands[i].word))
            return list_has(subcommands[i].behind, last, false);
    for (const struct redact_rule *rule = redact_rules; rule->programs; rule++)
        if (redact_program_matches(rule->programs, program))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (redact_program_matches(commands[i].programs, program))
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
        const char *list = commands[i].names, *behind = commands[i].behind;
        if (!redact_program_matches(commands[i].programs, program))
            continue;
        if (!list || (list_has_any_case(list, word) &&
                      (!behind || list_has(behind, redact_base_name(last), false))))
            return &commands[i];
    }
    return NULL;
}

enum redact_kind redact_reads(struct str program, struct str option, struct str value)
{
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        const char *options = readers[i].options, *values = readers[i].values;
        if (redact_program_matches(readers[i].programs, program) &&
            (!options || list_has(options, option, false)) &&
            (!values || list_has(values, value, false)))
            return readers[i].kind;
    }
    return REDACT_NOTHING;
}

bool redact_starts_others(struct str program, unsigned *ret_operands)
{
    for (size_t i = 0; i < ARRAY_SIZE(starters); i++) {
        if (!redact_program_matches(starters[i].programs, program))
            continue;
        *ret_operands = starters[i].operands;
        return true;
    }
    return false;
}

bool redact_is_keyword(struct str word)
{
    return list_has("{ ! if then elif else while until do", word, false);
}

bool redact_is_key_option(struct str name)
{
    return list_has("key hexkey pass hexpass secret hexsecret", name, false);
}
