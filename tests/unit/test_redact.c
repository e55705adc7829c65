/* Promises of base/redact.h: which words are secrets, and which only look like it. */
#include "unit.h"

#include "base/redact.h"

#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
enum { WORDS_MAX_HERE = 16 };

/* The words, given with '|' between them, after redaction, joined by '|'. */
static const char *argv_shown(const char *line)
{
    char *argv[WORDS_MAX_HERE + 1];
    size_t count = 0;
    struct str rest = str_from(line);
    while (rest.len > 0 && count < WORDS_MAX_HERE) {
        struct str word = str_cut(&rest, '|');
        argv[count++] = (char *)arena_dup_len(&arena, word.data, word.len);
    }
    argv[count] = NULL;
    unsigned hidden = 0;
    char **shown = redact_argv(&arena, argv, &hidden);
    assert_non_null(shown);
    const char *all = "";
    for (size_t i = 0; i < count; i++)
        all = arena_printf(&arena, "%s%s%s", all, i ? "|" : "", shown[i]);
    assert_null(shown[count]);
    assert_int_equal(hidden > 0, strcmp(all, line) != 0);
    /* Twice is once. */
    char **again = redact_argv(&arena, shown, NULL);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(again[i], shown[i]);
    return all;
}

struct row {
    const char *given, *shown; /* NULL: as it was given */
};

static void rows_check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_string_equal(argv_shown(rows[i].given),
                            rows[i].shown ? rows[i].shown : rows[i].given);
}
#define CHECK(rows) rows_check(rows, sizeof(rows) / sizeof((rows)[0]))

static void options_are_secrets_where_the_program_says_so(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"curl|-u|user:hunter2|http://h/", "curl|-u|[redacted]|http://h/"},
        {"curl|-uuser:hunter2", "curl|-u[redacted]"},
        {"/usr/bin/curl|-sSfu|user:pw", "/usr/bin/curl|-sSfu|[redacted]"},
        {"curl|-sSuuser:pw", "curl|-sSu[redacted]"},
        {"curl|--user=a:b", "curl|--user=[redacted]"},
        {"curl|-b|id=5", "curl|-b|[redacted]"},
        {"curl|-d|pin=1234", "curl|-d|[redacted]"},
        {"curl|-d|@body.json", NULL},
        {"timeout|5|curl|-u|a:b", "timeout|5|curl|-u|[redacted]"},
        {"mysql|-uroot|-phunter2|db", "mysql|-uroot|-p[redacted]|db"},
        {"mysqldump|--password=x", "mysqldump|--password=[redacted]"},
        {"mysql|-p|db", NULL},
        {"mysql|--password|db", NULL},
        {"mysql|-Ne|select 'x'", "mysql|-Ne|select [redacted]"},
        {"docker|exec|db|mysql|-phunter2", "docker|exec|db|mysql|-p[redacted]"},
        {"docker|login|-u|me|-p|pw", "docker|login|-u|me|-p|[redacted]"},
        {"sshpass|-p|pw|ssh|-p|22|host", "sshpass|-p|[redacted]|ssh|-p|22|host"},
        {"sshpass|-ppw|ssh|host", "sshpass|-p[redacted]|ssh|host"},
        {"ssh-keygen|-N|pw|-f|k", "ssh-keygen|-N|[redacted]|-f|k"},
        {"twine|upload|-u|me|-p|pw|x", "twine|upload|-u|me|-p|[redacted]|x"},
        {"tsql|-U|sa|-Ppw", "tsql|-U|sa|-P[redacted]"},
        {"redis-cli|-a|pw|PING", "redis-cli|-a|[redacted]|PING"},
        {"redis-cli|-p|6379|set|key|a value", "redis-cli|-p|6379|set|key|[redacted]"},
        {"redis-cli|AUTH|me|pw", "redis-cli|AUTH|[redacted]|[redacted]"},
        {"redis-cli|GET|key", NULL},
        {"psql|-Atc|select 'x', 4711 from t where a = $$y$$",
         "psql|-Atc|select [redacted], [redacted] from t where a = [redacted]"},
        {"psql|-W|db", NULL},
        {"psql|--password|db", NULL},
        {"sqlite3|a.db|insert into t2 values('x')",
         "sqlite3|a.db|insert into t2 values([redacted])"},
        {"openssl|enc|-pass|pass:x", "openssl|enc|-pass|[redacted]"},
        {"openssl|enc|-pass|env:X", NULL},
        {"rar|a|-hpsecret|x.rar", "rar|a|-hp[redacted]|x.rar"},
        {"7z|a|-psecret|x.7z", "7z|a|-p[redacted]|x.7z"},
        {"ldapsearch|-D|cn=me|-w|pw", "ldapsearch|-D|cn=me|-w|[redacted]"},
        {"ldapsearch|-xw|pw|-LLL", "ldapsearch|-xw|[redacted]|-LLL"},
        {"zip|-rP|pw|a.zip|f", "zip|-rP|[redacted]|a.zip|f"},
        {"unzip|-oP|pw|a.zip", "unzip|-oP|[redacted]|a.zip"},
        {"redis-server|--requirepass|pw|--masterauth|pw|--port|6379",
         "redis-server|--requirepass|[redacted]|--masterauth|[redacted]|--port|6379"},
        {"curl|-x|me:pw@proxy:3128|http://h/", "curl|-x|[redacted]@proxy:3128|http://h/"},
        {"curl|-sxme:pw@proxy|h", "curl|-sx[redacted]@proxy|h"},
        {"curl|--proxy=me:pw@proxy|h", "curl|--proxy=[redacted]@proxy|h"},
        {"curl|--preproxy|socks5://me:pw@p|h", "curl|--preproxy|socks5://[redacted]@p|h"},
        {"curl|me:p/w@host/?token=S", "curl|[redacted]@host/?token=[redacted]"},
        {"mysqlsh|root:pw@db", "mysqlsh|[redacted]@db"},
        {"sqlplus|-s|scott/tiger@orcl|@a/b.sql", "sqlplus|-s|scott/[redacted]@orcl|@a/b.sql"},
        {"sqlldr|userid=scott/tiger|control=a/b", "sqlldr|userid=scott/[redacted]|control=a/b"},
        {"ssh|-p|22|host|mysql|-ppw|db", "ssh|-p|22|host|mysql|-p[redacted]|db"},
        {"docker|run|--network|net|mysql|-ppw", "docker|run|--network|net|mysql|-p[redacted]"},
        {"kubectl|exec|net|--|mysql|-ppw", "kubectl|exec|net|--|mysql|-p[redacted]"},
        {"env|-i|curl|-o|mysql|-u|a:b", "env|-i|curl|-o|mysql|-u|[redacted]"},
        {"psql|-c|\\c postgresql://me:p-4x@h:5432/db",
         "psql|-c|\\c postgresql://[redacted]@h:[redacted]/db"},
        {"psql|-c|\\c host=h password=p-4x", "psql|-c|\\c host=h password=[redacted]"},
        /* A backslash is an escape for one server and none for another. */
        {"psql|-c|select 1 where a='C:\\', pw='hunter2' -- end",
         "psql|-c|select [redacted] where a=[redacted]"},
        {"mysql|-e|set @a='it\\'s hunter2', @b=5", "mysql|-e|set @a=[redacted]"},
        {"psql|-c|select 'a' as b, 'it''s' as d",
         "psql|-c|select [redacted] as b, [redacted] as d"},
    };
    CHECK(rows);
}

static void keys_of_openssl_stand_behind_its_options(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"openssl|dgst|-sha256|-hmac|k|f", "openssl|dgst|-sha256|-hmac|[redacted]|f"},
        {"openssl|mac|-macopt|key:k|-macopt|hexkey:0a|HMAC",
         "openssl|mac|-macopt|key:[redacted]|-macopt|hexkey:[redacted]|HMAC"},
        {"openssl|mac|-macopt|digest:SHA256|-in|f|HMAC", NULL},
        {"openssl|dgst|-mac|HMAC|f", NULL},
        {"openssl|s_client|-psk|0a1b|-connect|h:1",
         "openssl|s_client|-psk|[redacted]|-connect|h:1"},
        {"openssl|s_client|-psk_identity|me|-psk_session|f", NULL},
    };
    CHECK(rows);
}

static void names_are_secrets_in_any_program(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"app|--password|pw|x", "app|--password|[redacted]|x"},
        {"app|--token=abc", "app|--token=[redacted]"},
        {"app|--api-key|abc", "app|--api-key|[redacted]"},
        {"app|--client-secret|abc", "app|--client-secret|[redacted]"},
        {"app|--db.password=a,b;c&d", "app|--db.password=[redacted]"},
        {"app|-token|abc", "app|-token|[redacted]"},
        {"java|-Djavax.net.ssl.keyStorePassword=x",
         "java|-Djavax.net.ssl.keyStorePassword=[redacted]"},
        {"env|PGPASSWORD=a b|psql", "env|PGPASSWORD=[redacted]|psql"},
        {"app|--password=two words|x", "app|--password=[redacted]|x"},
        {"app|--token=a\nb; c|x", "app|--token=[redacted]|x"},
        {"gpg|--passphrase=correct horse battery", "gpg|--passphrase=[redacted]"},
        {"mvn|-Dgpg.passphrase=a b|deploy", "mvn|-Dgpg.passphrase=[redacted]|deploy"},
        {"helm|--set|db.password=a b", "helm|--set|db.password=[redacted]"},
        {"docker|run|--env=DB_PASSWORD=a b|x", "docker|run|--env=DB_PASSWORD=[redacted]|x"},
        {"docker|run|-eDB_PASSWORD=a b|x", "docker|run|-eDB_PASSWORD=[redacted]|x"},
        {"app|--private-key=-----BEGIN KEY-----\nMIIE\n", "app|--private-key=[redacted]"},
        {"sh|-c|app --password=two words", "sh|-c|app --password=[redacted] words"},
        {"sh|-c|app '--password=two words' x", "sh|-c|app '--password=[redacted]' x"},
        {"make|CFLAGS=-O2 -DNAME=x y", NULL},
        {"ssh-keygen|-qN|word|-f|x", "ssh-keygen|-qN|[redacted]|-f|x"},
        {"cargo|login|abc", "cargo|login|[redacted]"},
        {"cargo|build|login", NULL},
        {"useradd|-p|abc|me", "useradd|-p|[redacted]|me"},
        {"app|AWS_SECRET_ACCESS_KEY=x", "app|AWS_SECRET_ACCESS_KEY=[redacted]"},
        {"app|DB_PASS=x", "app|DB_PASS=[redacted]"},
        {"app|DB_PW=x|-pw", "app|DB_PW=[redacted]|-pw"},
        {"app|host=h password=pw dbname=d", "app|host=h password=[redacted] dbname=d"},
        {"app|{\"user\":\"u\",\"password\":\"p w\",\"n\":1}",
         "app|{\"user\":\"u\",\"password\":\"[redacted]\",\"n\":1}"},
        {"app|{\"token\":\"abc\"}", "app|{\"token\":\"[redacted]\"}"},
        {"app|http://h/p?a=1&token=S&b=2#f", "app|http://h/p?a=1&token=[redacted]&b=2#f"},
        {"app|/p?X-Amz-Signature=S", "app|/p?X-Amz-Signature=[redacted]"},
        {"app|/p?sig=S;sid=T", "app|/p?sig=[redacted];sid=[redacted]"},
        {"app|token: abc", "app|token: [redacted]"},
        {"app|password = abc", "app|password = [redacted]"},
        {"app|--pass|x|--pw|y|--jwt|z", "app|--pass|[redacted]|--pw|[redacted]|--jwt|[redacted]"},
        {"app|--auth|a:b", "app|--auth|[redacted]"},
        {"app|--auth|https://a:b@h/", "app|--auth|https://[redacted]@h/"},
        /* An option of its own is none that follows. */
        {"app|--password|--verbose", NULL},
        {"app|--pass|--verbose|--auth|--verbose", NULL},
    };
    CHECK(rows);
}

static void one_dash_is_enough_for_a_long_name(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"keytool|-list|-storepass|pw|-v", "keytool|-list|-storepass|[redacted]|-v"},
        {"keytool|-genkey|-keypass|pw", "keytool|-genkey|-keypass|[redacted]"},
        {"app|-pass|pw|-db-pass|pw|-apiToken|x|-clientsecret|y|-userPassword|z",
         "app|-pass|[redacted]|-db-pass|[redacted]|-apiToken|[redacted]|-clientsecret|[redacted]|"
         "-userPassword|[redacted]"},
        {"app|--keypass|pw|--psk|pw|DBPASS=pw",
         "app|--keypass|[redacted]|--psk|[redacted]|DBPASS=[redacted]"},
        {"keytool|-list|-storepass:env|NAME|-storepass:file|f", NULL},
        {"encode|-pass|2|-lowpass|f=300|-bypass|cache|-compass|north|--proxy-bypass|h", NULL},
        {"app|lowpass=3000,bypass=1|-DrenderPass=2|--compass=north", NULL},
        {"tar|-jwt|file|-pw|file|-psk|file", NULL}, /* three letters */
        {"app|-keypass|--verbose|-tokens|5|-passes|3|-passlogfile|f", NULL},
    };
    CHECK(rows);
}

static void operands_are_secrets_where_the_command_says_so(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"openssl|passwd|-6|pw", "openssl|passwd|-6|[redacted]"},
        {"/usr/bin/openssl|passwd|-1|-in|list|pw",
         "/usr/bin/openssl|passwd|-1|-in|list|[redacted]"},
        {"vault|login|s.abc", "vault|login|[redacted]"},
        {"vault|login|-no-print|-path|x|s.abc", "vault|login|-no-print|-path|x|[redacted]"},
        {"vault|login|-method=userpass|username=me|password=pw",
         "vault|login|-method=userpass|username=me|password=[redacted]"},
        {"htpasswd|-b|/etc/f|me|pw", "htpasswd|-b|/etc/f|me|[redacted]"},
        {"sudo|htpasswd|-cbB|-C|10|f|me|pw", "sudo|htpasswd|-cbB|-C|10|f|me|[redacted]"},
        {"htpasswd|-nb|me|pw", "htpasswd|-nb|me|[redacted]"},
        {"htpasswd|-b|-n|me|pw", "htpasswd|-b|-n|me|[redacted]"},
        {"wpa_passphrase|my net|pw", "wpa_passphrase|my net|[redacted]"},
        {"isql|-v|dsn|me|pw", "isql|-v|dsn|me|[redacted]"},
        {"rabbitmqadmin|-u|a|-p|pw|list|queues", "rabbitmqadmin|-u|a|-p|[redacted]|list|queues"},
        {"mutool|clean|-p|pw|a.pdf", "mutool|clean|-p|[redacted]|a.pdf"},
        {"openssl|enc|-in|passwd|-out|f|-a", NULL},
        {"openssl|x509|passwd|f", NULL},
        {"sudo|passwd|me", NULL},
        {"vault|login|-", NULL},
        {"vault|login|-method=oidc|role=dev", NULL},
        {"vault|read|login|f", NULL},
        {"docker|login|registry.example.org", NULL},
        {"htpasswd|-c|f|me", NULL},
        {"htpasswd|-n|me", NULL},
        {"wpa_passphrase|net", NULL},
        {"isql|dsn|me", NULL},
    };
    CHECK(rows);
}

static void a_name_may_be_a_word_before_its_secret(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"jq|-n|--arg|password|pw|$password", "jq|-n|--arg|password|[redacted]|$password"},
        {"jq|--arg|api_token|t|--arg|n|5|.x", "jq|--arg|api_token|[redacted]|--arg|n|5|.x"},
        {"jq|--argjson|secret|5|.", "jq|--argjson|secret|[redacted]|."},
        {"nix-build|--argstr|token|t", "nix-build|--argstr|token|[redacted]"},
        {"nix|develop|-c|mysql|-ppw", "nix|develop|-c|mysql|-p[redacted]"},
        {"aws|configure|set|aws_secret_access_key|k|--profile|p",
         "aws|configure|set|aws_secret_access_key|[redacted]|--profile|p"},
        {"aws|--profile|p|configure|set|aws_session_token|k",
         "aws|--profile|p|configure|set|aws_session_token|[redacted]"},
        {"nmcli|dev|wifi|connect|net|password|pw|ifname|w0",
         "nmcli|dev|wifi|connect|net|password|[redacted]|ifname|w0"},
        {"nmcli|c|modify|x|wifi-sec.key-mgmt|wpa-psk|wifi-sec.psk|pw",
         "nmcli|c|modify|x|wifi-sec.key-mgmt|wpa-psk|wifi-sec.psk|[redacted]"},
        {"jq|--arg|user|me|--rawfile|token|file|.token|data", NULL},
        {"jq|-r|.password|file", NULL},
        {"npm|config|set|//registry.example/:_authToken|k",
         "npm|config|set|//registry.example/:_authToken|[redacted]"},
        {"npm|config|set|_auth|k", "npm|config|set|_auth|[redacted]"},
        {"pip|config|set|global.password|k", "pip|config|set|global.password|[redacted]"},
        {"npm|publish|--otp|123456", "npm|publish|--otp|[redacted]"},
        {"app|--totp=123456", "app|--totp=[redacted]"},
        {"java|-jar|a.jar|jdbc:oracle:thin:scott/tiger@host:1521:orcl",
         "java|-jar|a.jar|jdbc:oracle:thin:scott/[redacted]@host:1521:orcl"},
        {"java|--url=jdbc:oracle:oci:scott/ti@ger/x@orcl",
         "java|--url=jdbc:oracle:oci:scott/[redacted]@orcl"},
        {"java|jdbc:oracle:thin:scott/tiger@//host:1521/x",
         "java|jdbc:oracle:thin:scott/[redacted]@//host:1521/x"},
        {"java|jdbc:oracle:thin:@//host:1521/x", NULL},
        {"java|jdbc:oracle:thin:@host:1521:me@x/y", NULL},
        {"app|--body={\"user\": \"me\",\n \"password\":\n  \"a\"\n}",
         "app|--body={\"user\": \"me\",\n \"password\":\n  \"[redacted]\"\n}"},
        {"npm|config|set|registry|https://h/", NULL},
        {"git|config|user.name|me", NULL},
        {"aws|configure|set|region|eu-west-1", NULL},
        {"aws|sts|get-session-token|x|s3|cp|token|there", NULL},
        {"nmcli|-g|802-1x.password|connection|show|x", NULL},
        {"./configure|--prefix=/usr|CC=gcc", NULL},
        {"echo|password|word", NULL},
    };
    CHECK(rows);
}

static void headers_are_hidden_to_their_end(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"curl|-H|Authorization: Bearer tok en", "curl|-H|Authorization: [redacted]"},
        {"curl|-HX-Api-Key: k", "curl|-HX-Api-Key: [redacted]"},
        {"curl|-H|X-API-Key:k", "curl|-H|X-API-Key:[redacted]"},
        {"curl|-H|Cookie: a=b; c=d", "curl|-H|Cookie: [redacted]"},
        {"curl|--header=Proxy-Authorization: Basic x",
         "curl|--header=Proxy-Authorization: [redacted]"},
        {"curl|-H|Authorization:Bearer tok", "curl|-H|Authorization:[redacted]"},
        {"http|h|Authorization:Bearer tok", "http|h|Authorization:[redacted]"},
        {"http|h|Authorization:Bearer|tok", "http|h|Authorization:Bearer|[redacted]"},
        {"wget|--header=Cookie: a=b; c=d", "wget|--header=Cookie: [redacted]"},
        {"wget|--header=Authorization: OAuth tok", "wget|--header=Authorization: [redacted]"},
        {"app|Authorization:|OAuth|tok", "app|Authorization:|OAuth|[redacted]"},
        {"app|Authorization:|SSWS|tok", "app|Authorization:|SSWS|[redacted]"},
        {"app|Authorization:|GenieKey|tok", "app|Authorization:|GenieKey|[redacted]"},
        {"app|--header=\"Authorization: Bearer tok\"",
         "app|--header=\"Authorization: [redacted]\""},
        {"redis-cli|SET|token:1|value", "redis-cli|SET|token:[redacted]|[redacted]"},
        {"curl|-H|Accept: text/html", NULL},
        {"curl|-HAccept:text/html", NULL},
        {"wget|--header=Accept: text/html", NULL},
        {"app|token::kind", NULL},
        {"curl|-H|X-Request-Id: 0123456789abcdef0123456789abcdef", NULL},
    };
    CHECK(rows);
}

static void user_info_of_a_uri_is_hidden_whole(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"psql|postgresql://me:pw@h:5432/db", "psql|postgresql://[redacted]@h:5432/db"},
        {"psql|postgres://me:p/w?x@h/db", "psql|postgres://[redacted]@h/db"},
        {"app|redis://:pw@h:6379/0", "app|redis://[redacted]@h:6379/0"},
        {"git|clone|https://sometoken@github.com/a/b",
         "git|clone|https://[redacted]@github.com/a/b"},
        {"app|--url=amqp://u:p@h,amqp://u:q@i",
         "app|--url=amqp://[redacted]@h,amqp://[redacted]@i"},
        {"app|me:pw@tcp(h:3306)/db", "app|me:[redacted]@tcp(h:3306)/db"},
        {"git|clone|ssh://git@h:22/a/b", NULL},
        {"git|clone|git@github.com:a/b", NULL},
        {"curl|http://h:8080/a@b", NULL},
        {"curl|http://[::1]:8080/", NULL},
        {"mail|me@example.org", NULL},
    };
    CHECK(rows);
}

static void keys_are_known_by_their_looks(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"app|AKIAIOSFODNN7EXAMPLE", "app|[redacted]"},
        {"app|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP", "app|[redacted]"},
        {"app|ghp_0123456789abcdefghijABCDEFGHIJ012345", "app|[redacted]"},
        {"app|wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
         NULL}, /* too many words: not sure enough */
        {"app|x|q9Z3kT7wLm2Xv8Rb5Nc1Yd4H", "app|x|[redacted]"},
        {"app|https://h/s/T0/q9Z3kT7wLm2Xv8Rb5Nc1Yd4H", "app|https://h/s/T0/[redacted]"},
        /* One character short. */
        {"app|q9Z3kT7wLm2Xv8Rb5Nc1Yd4", NULL},
    };
    CHECK(rows);
}

static void what_only_looks_like_it_stays(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"tar|-p|-xf|a.tar", NULL},
        {"tar|-xpf|a.tar", NULL},
        {"ssh|-p|22|host", NULL},
        {"ssh|-p22|host", NULL},
        {"mkdir|-p|a/b", NULL},
        {"app|--port|80", NULL},
        {"app|--port=80", NULL},
        {"python3|-u|script.py", NULL},
        {"grep|-u|word|file", NULL},
        {"sort|-u|--key=2", NULL},
        {"docker|run|-u|1000:1000|-p|80:80|-v|/secret:/secret|nginx", NULL},
        {"app|sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL},
        {"app|sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kx", NULL},
        {"git|show|b51a2d5f5ba2aa637850a1fb64bae169665000aa", NULL},
        {"app|123e4567-e89b-12d3-a456-426614174000", NULL},
        {"app|/usr/lib/q9Z3kT7wLm2Xv8Rb5Nc1Yd4H/lib.so", NULL},
        {"app|--file=/srv/q9Z3kT7wLm2Xv8Rb5Nc1Yd4H", NULL},
        {"app|./q9Z3kT7wLm2Xv8Rb5Nc1Yd4H", NULL},
        {"app|--gtest_filter=ParserTest2.HandlesNestedListsOfDepth17Well", NULL},
        {"app|TheParserTestCaseNumber2WithLongName", NULL},
        {"c++filt|_ZNSt6vectorIiSaIiEE9push_backERKi", NULL},
        {"app|--author=me|--max-tokens|5|--no-password|--design=x", NULL},
        {"env|PWD=/home/me|OLDPWD=/|app", NULL},
        {"app|std::token::kind", NULL},
        {"app|a=b", NULL},
        {"git|commit|-m|don't use curl -sS", NULL},
        {"encode|--pass|2|-pass|1|-pw", NULL},
        {"app|--auth|basic|--auth|http://idp:80/x|--no-auth|x", NULL},
        {"curl|-x|proxy:3128|me@host/|host:8080/a@b:c|-H|X-Mail:me@host", NULL},
        {"docker|run|nginx:1.25@sha256:e3b0c44298fc1c14", NULL},
        {"sqlplus|/|as|sysdba", NULL},
        {"sqlplus|scott@orcl|@/tmp/x.sql", NULL},
        {"sqlplus|/nolog", NULL},
        {"ssh|mysql.example.org|ls|-p", NULL},
        {"zip|-r|a.zip|P", NULL},
        {"docker|run|--network|net|nginx|-p|80:80", NULL},
        {"psql|-c|\\c db me h", NULL},
        {"psql|-c|select a from b", NULL},
        {"app|--format=\"a b\"|--x='it is'", NULL},
    };
    CHECK(rows);
}

static const char *text_shown(const char *text)
{
    unsigned count = 0;
    const char *shown = redact_line(&arena, text, &count);
    assert_int_equal(count > 0, strcmp(shown, text) != 0);
    return shown;
}

static void a_text_is_read_as_a_shell_would(void **state)
{
    (void)state;
    assert_string_equal(text_shown("cd /x && curl -u 'a:b c' http://h | mysql -pS;ls -p"),
                        "cd /x && curl -u '[redacted]' http://h | mysql -p[redacted];ls -p");
    assert_string_equal(text_shown("curl -H Authorization: Bearer tok http://h/?a=1&token=S"),
                        "curl -H Authorization: Bearer [redacted] http://h/?a=1&token=[redacted]");
    assert_string_equal(text_shown("cannot run 'curl': it's not there"),
                        "cannot run 'curl': it's not there");
    /* A word of a word: what a shell is given. */
    assert_string_equal(argv_shown("sh|-c|PGPASSWORD=x psql -c \"select 'y'\"; echo $HOME"),
                        "sh|-c|PGPASSWORD=[redacted] psql -c \"select [redacted]\"; echo $HOME");
    assert_string_equal(argv_shown("sh|-c|sh -c 'curl -u a:b'"),
                        "sh|-c|sh -c 'curl -u [redacted]'");
    assert_string_equal(argv_shown("ssh|h|mysql -pS db"), "ssh|h|mysql -p[redacted] db");
    /* Quotes in the midst of a word, and quotes that were escaped for a text around them. */
    assert_string_equal(argv_shown("sh|-c|wget --header=\"Authorization: Bearer tok\" http://h"),
                        "sh|-c|wget --header=\"Authorization: [redacted]\" http://h");
    assert_string_equal(argv_shown("ssh|h|curl -H\"Authorization: Bearer tok\" http://h"),
                        "ssh|h|curl -H\"Authorization: [redacted]\" http://h");
    assert_string_equal(text_shown("http h Authorization:'Bearer tok' 'Cookie:a=b; c=d'"),
                        "http h Authorization:[redacted] 'Cookie:[redacted]'");
    assert_string_equal(text_shown("curl -H $'Cookie: a=b; c=d' -H Cookie:\\ a=b\\;\\ c=d h"),
                        "curl -H $'Cookie: [redacted]' -H Cookie:[redacted] h");
    assert_string_equal(text_shown("sh -c \"curl -H \\\"Cookie: a=b; c=d\\\" -u a:b h\" x"),
                        "sh -c \"curl -H \\\"Cookie: [redacted]\\\" -u [redacted] h\" x");
    assert_string_equal(text_shown("app --run=\"curl -u 'a:b c' h\" --x='token: y'"),
                        "app --run=\"curl -u '[redacted]' h\" --x='token: [redacted]'");
    assert_string_equal(text_shown("app a,token=\"b c\" x"), "app a,token=\"[redacted]\" x");
    assert_string_equal(text_shown("ssh host mysql -ppw db"), "ssh host mysql -p[redacted] db");
}

static void shell_rows_check(const struct row *rows, size_t rows_count)
{
    for (size_t i = 0; i < rows_count; i++) {
        /* argv_shown() has '|' between words: '@' stands for that of a shell. */
        char *argv[WORDS_MAX_HERE + 1] = {NULL};
        size_t count = 0;
        struct str rest = str_from(rows[i].given);
        while (rest.len > 0) {
            struct str word = str_cut(&rest, '|');
            argv[count++] = (char *)arena_dup_len(&arena, word.data, word.len);
        }
        for (char *at = argv[count - 1]; *at; at++)
            *at = *at == '@' ? '|' : *at;
        const char *shown = rows[i].shown ? rows[i].shown : rows[i].given;
        char *last = (char *)arena_dup(&arena, strrchr(shown, '|') + 1);
        for (char *at = last; *at; at++)
            *at = *at == '@' ? '|' : *at;
        char **once = redact_argv(&arena, argv, NULL);
        assert_string_equal(once[count - 1], last);
        assert_string_equal(redact_argv(&arena, once, NULL)[count - 1], last);
    }
}
#define CHECK_SHELL(rows) shell_rows_check(rows, sizeof(rows) / sizeof((rows)[0]))

static void what_is_written_to_one_who_reads_a_secret_is_one(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"bash|-c|echo pw @ docker login -u me --password-stdin h",
         "bash|-c|echo [redacted] @ docker login -u me --password-stdin h"},
        {"bash|-c|echo -n pw@openssl enc -pass stdin -in f",
         "bash|-c|echo -n [redacted]@openssl enc -pass stdin -in f"},
        {"bash|-c|x; /bin/echo 'a pw' @ openssl enc -pass 'stdin' && echo end",
         "bash|-c|x; /bin/echo '[redacted]' @ openssl enc -pass 'stdin' && echo end"},
        {"sh|-c|printf '%s\\n' \"pw\" @ gpg --batch --passphrase-fd 0 -c f",
         "sh|-c|printf '%s\\n' \"[redacted]\" @ gpg --batch --passphrase-fd 0 -c f"},
        {"sh|-c|printf pw @ gpg --passphrase-fd=0 -c f",
         "sh|-c|printf [redacted] @ gpg --passphrase-fd=0 -c f"},
        {"sh|-c|echo pw 2>&1 @ base64 -d @& sudo -u me -kS ls",
         "sh|-c|echo [redacted] 2>&1 @ base64 -d @& sudo -u me -kS ls"},
        {"sh|-c|echo curl @\n sudo -S id", "sh|-c|echo [redacted] @\n sudo -S id"},
        {"sh|-c|sh -c 'echo pw @ sudo -S id'", "sh|-c|sh -c 'echo [redacted] @ sudo -S id'"},
        {"sh|-c|echo file @ sudo ls -S", NULL},
        {"sh|-c|echo file @ sudo -u me ls -S", NULL},
        {"sh|-c|echo word @ sort -S 5M", NULL},
        {"sh|-c|echo word @ openssl enc -pass env:X", NULL},
        {"sh|-c|echo word @ gpg --passphrase-fd 3", NULL},
        {"sh|-c|echo word; cat f @ docker login --password-stdin", NULL},
        {"sh|-c|echo word && sudo -S id", NULL},
        {"sh|-c|echo word @@ sudo -S id", NULL},
        {"sh|-c|sudo -S id < f @ echo word", NULL},
        {"sh|-c|grep word f @ sudo -S id", NULL},
        {"echo|word|sudo|-S", NULL},
        {"bash|-c|docker login -u me --password-stdin h <<< pw; echo end",
         "bash|-c|docker login -u me --password-stdin h <<< [redacted]; echo end"},
        {"bash|-c|sudo -S ls <<<'a pw' x", "bash|-c|sudo -S ls <<<[redacted] x"},
        {"bash|-c|gpg --passphrase-fd 0 -c f <<< \"a pw\"",
         "bash|-c|gpg --passphrase-fd 0 -c f <<< \"[redacted]\""},
        {"bash|-c|openssl enc -pass stdin <<EOF\npw\nmore\nEOF\necho end",
         "bash|-c|openssl enc -pass stdin <<EOF\n[redacted]\nEOF\necho end"},
        {"bash|-c|sudo -S id <<- 'E'\n\tpw\n\tE\nid",
         "bash|-c|sudo -S id <<- 'E'\n[redacted]\nE\nid"},
        {"bash|-c|sudo -S id <<E\npw", "bash|-c|sudo -S id <<E\n[redacted]"},
        {"bash|-c|cat <<< word", NULL},
        {"bash|-c|cat <<E\nword\nE", NULL},
        {"bash|-c|sudo -S id; cat <<< word", NULL},
    };
    CHECK_SHELL(rows);
}

static void what_hands_a_secret_on_has_it_too(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"sh|-c|cat <<< pw @ docker login --password-stdin",
         "sh|-c|cat <<< [redacted] @ docker login --password-stdin"},
        {"sh|-c|cat <<E @ sudo -S id\npw\nE\nls", "sh|-c|cat <<E @ sudo -S id\n[redacted]\nE\nls"},
        {"sh|-c|{ echo pw; echo pw; } @ passwd; echo end",
         "sh|-c|{ echo [redacted]; echo [redacted]; } @ passwd; echo end"},
        {"sh|-c|(echo pw; (echo pw)) 2>&1 @ sudo -S id",
         "sh|-c|(echo [redacted]; (echo [redacted])) 2>&1 @ sudo -S id"},
        {"sh|-c|if x; then echo pw @ passwd; fi", "sh|-c|if x; then echo [redacted] @ passwd; fi"},
        {"sh|-c|echo me:pw @ sudo -n chpasswd", "sh|-c|echo [redacted] @ sudo -n chpasswd"},
        {"sh|-c|echo me:pw @ docker exec -i c chpasswd",
         "sh|-c|echo [redacted] @ docker exec -i c chpasswd"},
        {"sh|-c|echo pw @ sudo docker login --password-stdin",
         "sh|-c|echo [redacted] @ sudo docker login --password-stdin"},
        {"sh|-c|chpasswd <<< me:pw", "sh|-c|chpasswd <<< [redacted]"},
        {"sh|-c|yes pw @ passwd", "sh|-c|yes [redacted] @ passwd"},
        {"sh|-c|curl -K <(echo \"user = u:pw\") -u a:b h",
         "sh|-c|curl -K <(echo \"[redacted]\") -u [redacted] h"},
        {"sh|-c|echo 'user = u:pw' @ curl -K - h", "sh|-c|echo '[redacted]' @ curl -K - h"},
        {"sh|-c|sudo -S id < <(echo pw)", "sh|-c|sudo -S id < <(echo [redacted])"},
        {"sh|-c|TOKEN=$(echo pw) cmd", "sh|-c|TOKEN=[redacted] cmd"},
        {"sh|-c|TOKEN=`echo pw` cmd", "sh|-c|TOKEN=[redacted] cmd"},
        {"sh|-c|curl h/?a=1,token=$(echo pw) x", "sh|-c|curl h/?a=1,token=[redacted] x"},
        {"sh|-c|curl h/?token=$(echo pw)w$(echo pw)&a=1 x", "sh|-c|curl h/?token=[redacted]&a=1 x"},
        {"sh|-c|x=$(mysql -ppw db) y", "sh|-c|x=$(mysql -p[redacted] db) y"},
        {"sh|-c|x=$(echo $(mysql -ppw db)) y", "sh|-c|x=$(echo $(mysql -p[redacted] db)) y"},
        {"sh|-c|docker login -p $(echo pw) h", "sh|-c|docker login -p [redacted] h"},
        {"sh|-c|cat <<< word @ sort", NULL},
        {"sh|-c|cat <<E @ sort\nword\nE", NULL},
        {"sh|-c|{ echo word; echo word; } @ sort @ head", NULL},
        {"sh|-c|{ echo word; }; sudo -S id", NULL},
        {"sh|-c|(echo word) @@ sudo -S id", NULL},
        {"sh|-c|echo word @ grep passwd", NULL},
        {"sh|-c|echo word @ sudo grep passwd f", NULL},
        {"sh|-c|yes word @ head", NULL},
        {"sh|-c|echo word \"\"", NULL},
        {"sh|-c|curl -K file <(echo word)", NULL},
        {"sh|-c|diff <(echo word) <(echo word)", NULL},
        {"sh|-c|x=$(echo word) cmd `ls -p a`", NULL},
        {"sh|-c|sort < <(echo word)", NULL},
    };
    CHECK_SHELL(rows);
}

static void statements_that_are_read_lose_their_literals(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"sh|-c|psql <<< \"alter role r password 'x'\" db",
         "sh|-c|psql <<< \"alter role r password [redacted]\" db"},
        {"sh|-c|psql <<<\"alter role r password 'x'\"",
         "sh|-c|psql <<<\"alter role r password [redacted]\""},
        {"sh|-c|psql db <<EOF\nalter role r password 'x';\nEOF\necho 5",
         "sh|-c|psql db <<EOF\nalter role r password [redacted];\nEOF\necho 5"},
        {"sh|-c|echo \"alter user u identified by 'x'\" @ mysql db",
         "sh|-c|echo \"alter user u identified by [redacted]\" @ mysql db"},
        {"sh|-c|cat <<E @ sudo -u p psql\nalter role r password 'x';\nE",
         "sh|-c|cat <<E @ sudo -u p psql\nalter role r password [redacted];\nE"},
        {"sh|-c|echo \"set a = 'x'\" @ docker exec -i db psql -U me",
         "sh|-c|echo \"set a = [redacted]\" @ docker exec -i db psql -U me"},
        {"sh|-c|echo \"it is 'x'\" @ less", NULL},
        {"sh|-c|cat <<EOF\nit is 'x'\nEOF", NULL},
        {"sh|-c|psql <<< \"select a from b\"", NULL},
    };
    CHECK_SHELL(rows);
}

static void names_of_secrets_may_go_on(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"app|SECRET_KEY_BASE=x|APP_SECRET_V2=x|MYSQL_PASS1=x|DB_PASSWORD_2=x",
         "app|SECRET_KEY_BASE=[redacted]|APP_SECRET_V2=[redacted]|MYSQL_PASS1=[redacted]|"
         "DB_PASSWORD_2=[redacted]"},
        {"app|CLIENT_SECRET_ID=x|JWT_SIGNING=x|--otp-code|123456",
         "app|CLIENT_SECRET_ID=[redacted]|JWT_SIGNING=[redacted]|--otp-code|[redacted]"},
        {"app|GITHUB_PAT=a1b2c3d4e5|STRIPE_SK=a1b2c3d4e5|-eSENDGRID_KEY=x",
         "app|GITHUB_PAT=[redacted]|STRIPE_SK=[redacted]|-eSENDGRID_KEY=x"},
        {"docker|run|-e|SENDGRID_KEY=a1b2c3d4e5|--env=FOO_KEY=a1b2c3d4e5",
         "docker|run|-e|SENDGRID_KEY=[redacted]|--env=FOO_KEY=[redacted]"},
        {"sh|-c|export FOO_KEY=\"a1b2c3d4e5\"; x", "sh|-c|export FOO_KEY=[redacted]; x"},
        {"app|SLACK_WEBHOOK_URL=x", "app|SLACK_WEBHOOK_URL=[redacted]"},
        {"curl|https://hooks.slack.com/services/T0/B0/x",
         "curl|https://hooks.slack.com/services/[redacted]"},
        {"curl|https://api.telegram.org/bot12:AAx/sendMessage?text=a",
         "curl|https://api.telegram.org/bot[redacted]?text=a"},
        {"curl|https://discord.com/api/webhooks/1/x",
         "curl|https://discord.com/api/webhooks/[redacted]"},
        {"ruby|-e|ENV[\"TOKEN\"]=\"abc\"", "ruby|-e|ENV[\"TOKEN\"]=\"[redacted]\""},
        {"ruby|-e|ENV['TOKEN'] = 'abc'; x", "ruby|-e|ENV['TOKEN'] = '[redacted]'; x"},
        {"cast|send|--private-key|0x4c0883a69102", "cast|send|--private-key|[redacted]"},
        {"app|TOKEN_TYPE=x|PASSWORD_FILE=x|SECRET_NAME=x|TOKEN_URL=x|PASS_THROUGH1=x", NULL},
        {"app|--secret-id|x|--secret-id=x|--otp-codes|5", NULL},
        {"app|PRIMARY_KEY=user_id_1234|SORT_KEY=created2at1|FOREIGN_KEY=a1b2c3d4e5|KEY=up", NULL},
        {"app|--key=column12345|FOO_KEY=id|FOO_KEY=/etc/key12345|FOO_KEY=1234567890", NULL},
        {"app|FOO_KEY=server1.pem|FOO_KEY=created_at|FOO_KEY=https://h/a1|FOO_KEY=$BAR12345", NULL},
        {"app|foo_key=a1b2c3d4e5|GPG_KEY=A035C8C19219BA82|MAP_PATH=a1b2c3d4e5", NULL},
        {"curl|https://slack.com/services/T0|https://api.telegram.org/|https://discord.com/x",
         NULL},
        {"ruby|-e|ENV[\"HOME\"]=\"abc\"", NULL},
        {"app|[token]:|word", NULL},
        {"ansible|--private-key|~/.ssh/id_rsa|x|--private-key|key1.pem|--private-key|mykey", NULL},
    };
    CHECK(rows);
}

static void settings_have_a_name_and_a_secret(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"rclone|config|create|r|s3|access_key_id|a|secret_access_key|k",
         "rclone|config|create|r|s3|access_key_id|a|secret_access_key|[redacted]"},
        {"mysqladmin|-u|root|password|pw|-h|db", "mysqladmin|-u|root|password|[redacted]|-h|db"},
        {"npm|set|//r/:_password|k", "npm|set|//r/:_password|[redacted]"},
        {"yarn|config|set|npmAuthToken|k", "yarn|config|set|npmAuthToken|[redacted]"},
        {"poetry|config|pypi-token.pypi|k", "poetry|config|pypi-token.pypi|[redacted]"},
        {"poetry|config|http-basic.x|u|k", "poetry|config|http-basic.x|u|[redacted]"},
        {"composer|config|--global|http-basic.h|u|k",
         "composer|config|--global|http-basic.h|u|[redacted]"},
        {"wg|set|wg0|private-key|yAnz5TF+lXXJte14tji3zlMNq=", "wg|set|wg0|private-key|[redacted]"},
        {"git|config|--global|user.password|k", "git|config|--global|user.password|[redacted]"},
        {"rclone|config|show|r", NULL},
        {"git|config|--global|user.name|me", NULL},
        {"mysqladmin|-u|root|status|x", NULL},
        {"npm|set|registry|https://h/", NULL},
        {"npm|install|jsonwebtoken|express", NULL},
        {"app|set|token|x", NULL},
        {"poetry|config|repositories.x|https://h/", NULL},
        {"composer|config|http|u|k", NULL},
        {"wg|set|wg0|private-key|/etc/wg.key|listen-port|1", NULL},
    };
    CHECK(rows);
}

static void commands_have_secrets_of_their_own(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"kubectl|create|secret|generic|mysql|--from-literal=k=w|--from-literal|l=w",
         "kubectl|create|secret|generic|mysql|--from-literal=k=[redacted]|--from-literal|l=["
         "redacted]"},
        {"aws|secretsmanager|create-secret|--name|n|--secret-string|w",
         "aws|secretsmanager|create-secret|--name|n|--secret-string|[redacted]"},
        {"aws|ssm|put-parameter|--name|n|--value|w",
         "aws|ssm|put-parameter|--name|n|--value|[redacted]"},
        {"az|keyvault|secret|set|--name|n|--value|w",
         "az|keyvault|secret|set|--name|n|--value|[redacted]"},
        {"pdftotext|-upw|w|-opw|w|f", "pdftotext|-upw|[redacted]|-opw|[redacted]|f"},
        {"ffmpeg|-decryption_key|w|-i|f", "ffmpeg|-decryption_key|[redacted]|-i|f"},
        {"qpdf|--encrypt|w|w|256|--|a|b", "qpdf|--encrypt|[redacted]|[redacted]|256|--|a|b"},
        {"pdftk|a|input_pw|w|output|b|user_pw|w|owner_pw|w",
         "pdftk|a|input_pw|[redacted]|output|b|user_pw|[redacted]|owner_pw|[redacted]"},
        {"vault|operator|unseal|w", "vault|operator|unseal|[redacted]"},
        {"vault|kv|put|-mount|s|path|k=w|l=@f", "vault|kv|put|-mount|s|path|k=[redacted]|l=@f"},
        {"gh|secret|set|NAME|-b|w", "gh|secret|set|NAME|-b|[redacted]"},
        {"gh|secret|set|NAME|--body=w", "gh|secret|set|NAME|--body=[redacted]"},
        {"rabbitmqctl|-n|x|add_user|u|w", "rabbitmqctl|-n|x|add_user|u|[redacted]"},
        {"rabbitmqctl|change_password|u|w", "rabbitmqctl|change_password|u|[redacted]"},
        {"swaks|-au|u|-ap|w|--auth-password|w",
         "swaks|-au|u|-ap|[redacted]|--auth-password|[redacted]"},
        {"yt-dlp|-u|u|-p|w|x", "yt-dlp|-u|u|-p|[redacted]|x"},
        {"mc|alias|set|n|http://h|ak|w|--api|S3v4",
         "mc|alias|set|n|http://h|ak|[redacted]|--api|S3v4"},
        {"xfreerdp|/u:u|/p:w|/v:h", "xfreerdp|/u:u|/p:[redacted]|/v:h"},
        {"lftp|-e|set x y; open -u u,w h", "lftp|-e|set x y; open -u [redacted] h"},
        {"bw|unlock|w|--raw", "bw|unlock|[redacted]|--raw"},
        {"bw|login|e|w|--method|0", "bw|login|e|[redacted]|--method|0"},
        {"mkpasswd|-m|sha-512|w", "mkpasswd|-m|sha-512|[redacted]"},
        {"oathtool|--totp|-b|w", "oathtool|--totp|-b|[redacted]"},
        {"kubectl|create|configmap|c|--from-literal=k=v", NULL},
        {"kubectl|create|secret|generic|s|--from-file=k=f|--from-literal", NULL},
        {"aws|secretsmanager|get-secret-value|--secret-id|n", NULL},
        {"aws|secretsmanager|create-secret|--secret-string|file://f", NULL},
        {"aws|ssm|get-parameter|--name|n", NULL},
        {"az|appconfig|kv|set|--value|x", NULL},
        {"app|-upw|x|-opw|x|-ap|x|-decryption_key|x", NULL},
        {"qpdf|--decrypt|a|b", NULL},
        {"pdftk|a.pdf|cat|1|output|b.pdf", NULL},
        {"vault|operator|init|x", NULL},
        {"vault|kv|get|path", NULL},
        {"vault|kv|put|path|@f", NULL},
        {"gh|pr|create|-b|text|--body|text", NULL},
        {"rabbitmqctl|delete_user|u|x", NULL},
        {"yt-dlp|-P|dir|-f|x", NULL},
        {"mc|cp|set|a|b|c|d", NULL},
        {"app|/p:x", NULL},
        {"lftp|-e|open -p 21 h", NULL},
        {"bw|list|items|x", NULL},
        {"bw|login|e|--passwordenv|X", NULL},
        {"mkpasswd|-m|sha-512|-R|5000", NULL},
        {"oathtool|-b|-|-d|6", NULL},
    };
    CHECK(rows);
}

static void what_does_not_fit_is_cut_and_measured(void **state)
{
    (void)state;
    char text[8];
    unsigned count = 0;
    assert_int_equal(redact_text(STR("a --token=secret"), text, sizeof(text), &count),
                     strlen("a --token=[redacted]"));
    assert_string_equal(text, "a --tok");
    assert_int_equal(count, 1);
    struct redact redact = REDACT_INIT;
    assert_int_equal(redact_word(&redact, STR(""), text, sizeof(text)), 0);
    assert_string_equal(text, "");
}

static void a_file_of_a_url_keeps_its_name_without_the_token(void **state)
{
    (void)state;
    char text[64];
    redact_file_name(STR("/tmp/f?token=S&a=1"), text, sizeof(text));
    assert_string_equal(text, "/tmp/f?token=[redacted]&a=1");
    redact_file_name(STR("/data/session=2024/token"), text, sizeof(text));
    assert_string_equal(text, "/data/session=2024/token");
}

/* Bounded by the length: a hostile command line costs no more than a long one. */
static void long_words_take_time_by_length_only(void **state)
{
    (void)state;
    /* clang-format off */
    static const char *const patterns[] = {
        "://", "a:b@", "'", "\"", "token=", "(", "\\", "aB3", "=", "/", "@//", "eyJ",
        "{\"password\":", "$", "- ", "sh -c '", "\\\"", "echo x|", "echo '|", "echo|sudo\n|",
        "echo x>&", "://a:", "a=\"", "'\\", "x=\\\" ", "$(", "$(a;b) ", "a`b ", "{ echo x; } | ",
        "cat <<< a|", "A_KEY=",
    };
    /* clang-format on */
    enum { BYTES = 128 * 1024 };
    char *text = malloc(BYTES + 1);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        size_t len = strlen(patterns[i]), at = 0;
        for (; at + len <= BYTES; at += len)
            memcpy(text + at, patterns[i], len);
        unsigned count = 0;
        struct redact redact = REDACT_INIT;
        size_t size = redact_text((struct str){text, at}, NULL, 0, &count);
        assert_true(size > 0);
        redact_word(&redact, STR("psql"), NULL, 0);
        redact_word(&redact, STR("-c"), NULL, 0);
        redact_word(&redact, (struct str){text, at}, NULL, 0);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_secrets_where_the_program_says_so),
        cmocka_unit_test(keys_of_openssl_stand_behind_its_options),
        cmocka_unit_test(names_are_secrets_in_any_program),
        cmocka_unit_test(one_dash_is_enough_for_a_long_name),
        cmocka_unit_test(operands_are_secrets_where_the_command_says_so),
        cmocka_unit_test(a_name_may_be_a_word_before_its_secret),
        cmocka_unit_test(headers_are_hidden_to_their_end),
        cmocka_unit_test(user_info_of_a_uri_is_hidden_whole),
        cmocka_unit_test(keys_are_known_by_their_looks),
        cmocka_unit_test(what_only_looks_like_it_stays),
        cmocka_unit_test(a_text_is_read_as_a_shell_would),
        cmocka_unit_test(what_is_written_to_one_who_reads_a_secret_is_one),
        cmocka_unit_test(what_hands_a_secret_on_has_it_too),
        cmocka_unit_test(statements_that_are_read_lose_their_literals),
        cmocka_unit_test(names_of_secrets_may_go_on),
        cmocka_unit_test(settings_have_a_name_and_a_secret),
        cmocka_unit_test(commands_have_secrets_of_their_own),
        cmocka_unit_test(what_does_not_fit_is_cut_and_measured),
        cmocka_unit_test(a_file_of_a_url_keeps_its_name_without_the_token),
        cmocka_unit_test(long_words_take_time_by_length_only),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
