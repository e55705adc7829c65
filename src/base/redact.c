/* A command line word by word: what each means follows from the program and the word before. */
#include "base/redact_parts.h"

#include <ctype.h>

enum {
    LETTERS_MAX = 4, /* "-pw" and "-psk" may be options of one letter each */
};

struct str redact_base_name(struct str word)
{
    const char *slash = memrchr(word.data, '/', word.len);
    size_t skip = slash ? (size_t)(slash + 1 - word.data) : 0;
    return (struct str){word.data + skip, word.len - skip};
}

static bool has_blank(struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (strchr(" \t\n", word.data[i]))
            return true;
    return false;
}

static enum redact_kind rule_of(struct str program, struct str option)
{
    for (const struct redact_rule *rule = redact_rules; rule->programs; rule++) {
        if (!redact_program_matches(rule->programs, program))
            continue;
        struct str options = str_from(rule->options);
        do {
            if (str_eq(str_cut(&options, ' '), option))
                return rule->kind;
        } while (options.len > 0);
    }
    return REDACT_NOTHING;
}

static enum redact_kind rule_find(const struct redact *redact, struct str option)
{
    enum redact_kind kind = rule_of(redact->program, option);
    return kind != REDACT_NOTHING || redact->other.len == 0 ? kind : rule_of(redact->other, option);
}

/* "timeout 5 curl …", "docker exec db mysql …", "ssh host mysql …": is this word the program? What
 * stands behind an option may be its value ("docker run --network net mysql"): then its rules hold
 * until there is another one, and beside those of that one. True when it is one. */
static bool program_look(struct redact *redact, struct str name)
{
    bool known = redact->known || redact_program_is_known(redact->program, STR(""));
    bool anew = redact->doubtful || str_is(redact->last, "--");
    bool starts_others = redact_program_matches("sshpass ssh", redact->program);
    if ((known && !anew && !starts_others) || !redact_program_is_known(name, redact->last))
        return false;
    if (known && anew && redact->other.len == 0)
        redact->other = redact->program;
    redact->program = name;
    redact->known = true;
    struct str last = redact->last;
    redact->doubtful = last.len > 1 && last.data && last.data[0] == '-' && !str_is(last, "--") &&
                       !memchr(last.data, '=', last.len);
    return true;
}

/* "PGPASSWORD=…" as one word: all that follows. */
static bool assignment(struct redact_out *out, struct str word)
{
    size_t len = 0;
    while (len < word.len && (isalnum((unsigned char)word.data[len]) || word.data[len] == '_'))
        len++;
    if (len + 1 >= word.len || word.data[len] != '=' ||
        !redact_is_secret_pair((struct str){word.data, len},
                               (struct str){word.data + len + 1, word.len - len - 1}))
        return false;
    redact_put(out, (struct str){word.data, len + 1});
    redact_hide(out);
    return true;
}

/* The same of a word with blanks: "--password=two words", "--env=DB_PASSWORD=two words",
 * "-Ddb.password=…". */
static bool assignment_in(struct redact_out *out, struct str word)
{
    size_t start = 0;
    for (size_t at = 0; at + 1 < word.len; at++) {
        char c = word.data[at];
        if (c != '=' && (c == '\0' || (!isalnum((unsigned char)c) && !strchr("_-.", c))))
            return false;
        if (c != '=')
            continue;
        if (redact_is_secret_pair((struct str){word.data + start, at - start},
                                  (struct str){word.data + at + 1, word.len - at - 1})) {
            redact_put(out, (struct str){word.data, at + 1});
            redact_hide(out);
            return true;
        }
        start = at + 1;
    }
    return false;
}

/* Where the part in quotes begins of "--option="a text"" or "-X'a text'", that ends with them; 0:
 * it is no such word. */
static size_t quoted_part(struct str word)
{
    size_t at = 0;
    while (at < word.len && word.data[at] && !strchr("\"'\\ \t\n", word.data[at]))
        at++;
    if (at == 0 || at + 2 > word.len || !strchr("\"'", word.data[at]))
        return 0;
    struct str rest = {word.data + at + 1, word.len - at - 1};
    const char *end = memchr(rest.data, word.data[at], rest.len);
    return end && end + 1 == word.data + word.len ? at + 1 : 0;
}

bool redact_names_secret(struct str before)
{
    size_t end = before.len;
    if (end == 0 || !strchr("=:", before.data[end - 1]))
        return false;
    size_t start = --end;
    while (start > 0 && (isalnum((unsigned char)before.data[start - 1]) ||
                         strchr("_-.", before.data[start - 1])))
        start--;
    return redact_is_secret_name((struct str){before.data + start, end - start});
}

/* A word that is a text of its own, has one in quotes, or is a plain one. */
static void plain(struct redact *redact, struct redact_out *out, struct str word)
{
    bool script = str_is(redact->last, "-c") && has_blank(word); /* of a shell */
    if (!script && assignment(out, word))
        return;
    size_t inner = has_blank(word) && redact->depth < REDACT_DEPTH_MAX ? quoted_part(word) : 0;
    if (inner > 0 && !redact_names_secret((struct str){word.data, inner - 1})) {
        redact_scan(out, (struct str){word.data, inner});
        redact_text_into(out, (struct str){word.data + inner, word.len - inner - 1},
                         redact->depth + 1U, REDACT_NOTHING);
        redact_put(out, (struct str){word.data + word.len - 1, 1});
    } else if (inner == 0 && !script && has_blank(word) && assignment_in(out, word)) {
        return;
    } else if (inner == 0 && has_blank(word) && redact->depth < REDACT_DEPTH_MAX) {
        redact_text_into(out, word, redact->depth + 1U, REDACT_NOTHING);
    } else if (redact_scan(out, word)) {
        redact->wanted = REDACT_HEADER;
    }
}

/* "user:word", and no "http://…". */
static bool is_pair(struct str word)
{
    const char *colon = memchr(word.data, ':', word.len);
    return colon && !str_starts((struct str){colon, word.len - (size_t)(colon - word.data)}, "://");
}

/* Letters, digits, '_', '-' and '.': the name of a secret; of "//host/:_authToken" the end. */
static enum redact_name operand_name(struct str word)
{
    const char *colon = str_starts(word, "//") ? memrchr(word.data, ':', word.len) : NULL;
    if (colon)
        word = (struct str){colon + 1, word.len - (size_t)(colon + 1 - word.data)};
    for (size_t i = 0; i < word.len; i++)
        if (!isalnum((unsigned char)word.data[i]) && !strchr("_-.", word.data[i]))
            return REDACT_NAME_PLAIN;
    return redact_name_kind(word);
}

/* "key:WORD" of openssl's -macopt. */
static void key_option(struct redact_out *out, struct str word)
{
    const char *colon = memchr(word.data, ':', word.len);
    size_t len = colon ? (size_t)(colon - word.data) : 0;
    if (len + 1 >= word.len || !redact_is_key_option((struct str){word.data, len})) {
        redact_scan(out, word);
        return;
    }
    redact_put(out, (struct str){word.data, len + 1});
    redact_hide(out);
}

/* "<(echo WORD)": what is written there is read as `piped`. False: the word is none. */
static bool from_command(struct redact *redact, struct redact_out *out, enum redact_kind piped,
                         struct str word)
{
    enum { OPENS = 2 };
    if (!str_starts(word, "<(") || !str_ends(word, ")") || redact->depth >= REDACT_DEPTH_MAX)
        return false;
    redact_put(out, (struct str){word.data, OPENS});
    redact_text_into(out, (struct str){word.data + OPENS, word.len - OPENS - 1}, redact->depth + 1U,
                     piped);
    redact_put(out, STR(")"));
    return true;
}

/* "name=WORD". */
static void assigned(struct redact_out *out, struct str word)
{
    const char *equals = memchr(word.data, '=', word.len);
    size_t len = equals ? (size_t)(equals + 1 - word.data) : word.len;
    if (len == word.len || word.data[len] == '@') {
        redact_scan(out, word);
        return;
    }
    redact_put(out, (struct str){word.data, len});
    redact_hide(out);
}

/* Is the value of an option of that kind, for what it is, no secret? */
static bool value_is_shown(enum redact_kind kind, struct str word)
{
    switch (kind) {
    case REDACT_BODY:
        return str_starts(word, "@") || str_starts(word, "file://") || str_starts(word, "fileb://");
    case REDACT_WORD: /* "--pass 2" counts */
        return word.len == 1 && isdigit((unsigned char)word.data[0]);
    case REDACT_PHRASE:
        return str_starts(word, "file:") || str_starts(word, "env:") || str_starts(word, "fd:") ||
               str_is(word, "stdin");
    case REDACT_HEADER: /* "Authorization: Bearer" */
        return redact_is_scheme(word);
    case REDACT_NAMED:
        return true;
    default:
        return word.len == 0;
    }
}

/* What the word behind such a value is. */
static enum redact_kind value_next(enum redact_kind kind, struct str word)
{
    if (kind == REDACT_HEADER && (redact_is_scheme(word) || str_ends(word, ";")))
        return kind; /* "Cookie: a=b; c=d" */
    bool secret = kind == REDACT_TWO ||
                  (kind == REDACT_NAMED && operand_name(word) != REDACT_NAME_PLAIN);
    return secret ? REDACT_VALUE : REDACT_NOTHING;
}

/* The value of an option of that kind. */
static void value(struct redact *redact, struct redact_out *out, enum redact_kind kind,
                  struct str word)
{
    enum redact_kind next = value_next(kind, word);
    if (next != REDACT_NOTHING)
        redact->wanted = (unsigned char)next;
    if (kind == REDACT_SQL)
        redact_sql(out, word);
    else if (value_is_shown(kind, word) || word.len == 0)
        redact_put(out, word);
    else if (kind == REDACT_KEY)
        key_option(out, word);
    else if (kind == REDACT_ASSIGN)
        assigned(out, word);
    else if (kind == REDACT_OTHER || (kind == REDACT_LOOKS && !redact_is_keylike(word)) ||
             (kind == REDACT_FROM && !from_command(redact, out, REDACT_VALUE, word)))
        redact_scan(out, word);
    else if (kind == REDACT_USER || (kind == REDACT_PAIR && !is_pair(word)))
        (void)(redact_user(out, word) || redact_scan(out, word));
    else if (kind != REDACT_FROM)
        redact_hide(out);
}

/* "-uWORD", "-sSuWORD", "-sSu": the letter of a rule, after others that take no value. True when
 * it was one. */
static bool short_option(struct redact *redact, struct redact_out *out, struct str word)
{
    const char *flags = redact_flags_of(redact->program);
    if (!flags)
        flags = redact_flags_of(redact->other);
    for (size_t i = 1; i < word.len && word.data[1] != '-'; i++) {
        char letter[] = {'-', word.data[i]};
        enum redact_kind kind = rule_find(redact, (struct str){letter, 2});
        struct str rest = {word.data + i + 1, word.len - i - 1};
        if (kind == REDACT_FEWER) {
            redact->fewer++;
            continue;
        }
        if (kind != REDACT_NOTHING && kind != REDACT_FLAG) {
            redact_put(out, (struct str){word.data, i + 1});
            if (rest.len > 0)
                value(redact, out, kind, rest);
            else
                redact->wanted = (unsigned char)(kind == REDACT_BESIDE ? REDACT_NOTHING : kind);
            return true;
        }
        if (!flags || !strchr(flags, word.data[i]))
            return false;
    }
    return false;
}

/* "-hpWORD" of rar: longer than a letter, and with the word at once. */
static bool joined_option(struct redact *redact, struct redact_out *out, struct str word)
{
    enum { LETTERS = 2 };
    struct str option = {word.data, LETTERS + 1};
    if (word.len <= option.len || rule_find(redact, option) != REDACT_BESIDE)
        return false;
    redact_put(out, option);
    redact_hide(out);
    return true;
}

/* "Authorization: Bearer …" as one word, also behind "-H" and "--header=", in quotes or without a
 * blank: all that follows, but for a closing quote. */
static bool header(struct redact *redact, struct redact_out *out, struct str word)
{
    size_t name = 0, at = 0;
    char quote = '\0';
    for (; at < word.len && word.data[at] != ':'; at++) {
        char c = word.data[at];
        if (c == '"' || c == '\'')
            quote = c;
        if (c == '=' || c == quote)
            name = at + 1;
        else if (c == '\0' || (!isalnum((unsigned char)c) && !strchr("-_\\$", c)))
            return false;
    }
    size_t start = MIN(at + 1, word.len), end = word.len;
    if (redact_name_kind((struct str){word.data + name, at - name}) != REDACT_NAME_STRONG)
        return false;
    while (start < word.len && strchr(" \t", word.data[start]))
        start++;
    struct str rest = {word.data + start, word.len - start};
    if (rest.len == 0 || strchr(":=", rest.data[0]) || str_starts(rest, "//"))
        return false; /* "token::kind", "token:=json" is no header */
    if (redact_is_scheme(rest)) {
        redact_put(out, word);
        redact->wanted = REDACT_HEADER;
        return true;
    }
    if (quote && rest.len > 1 && word.data[end - 1] == quote)
        end -= 1U + (word.data[end - 2] == '\\');
    redact_put(out, (struct str){word.data, start});
    redact_hide(out);
    redact_put(out, (struct str){word.data + end, word.len - end});
    return true;
}

/* "-storepass:env NAME" of Java's programs: where the secret is. */
static bool names_place(struct str word)
{
    const char *colon = memchr(word.data, ':', word.len);
    struct str name = {word.data, colon ? (size_t)(colon - word.data) : 0};
    struct str place = {word.data + name.len, word.len - name.len};
    return (str_is(place, ":env") || str_is(place, ":file")) && redact_is_secret_name(name);
}

/* A word that begins with '-'. */
static void option(struct redact *redact, struct redact_out *out, struct str word)
{
    const char *equals = memchr(word.data, '=', word.len);
    struct str name = {word.data, equals ? (size_t)(equals - word.data) : word.len};
    enum redact_kind kind = rule_find(redact, name);
    if (kind != REDACT_NOTHING && equals) {
        struct str rest = {equals + 1, word.len - name.len - 1};
        redact_put(out, (struct str){word.data, name.len + 1});
        value(redact, out, kind == REDACT_FLAG ? REDACT_VALUE : kind, rest);
        return;
    }
    if (kind != REDACT_NOTHING) {
        redact_put(out, word);
        if (kind == REDACT_FEWER)
            redact->fewer++;
        else if (kind != REDACT_BESIDE && kind != REDACT_FLAG)
            redact->wanted = (unsigned char)kind;
        return;
    }
    if (names_place(word)) {
        redact_put(out, word);
        return;
    }
    if (short_option(redact, out, word) || joined_option(redact, out, word) ||
        header(redact, out, word))
        return;
    bool bare = !equals && !has_blank(word) && !str_starts(word, "--no-") &&
                !memchr(word.data, ':', word.len);
    enum redact_name named = bare ? redact_name_kind(name) : REDACT_NAME_PLAIN;
    if (named == REDACT_NAME_STRONG)
        kind = REDACT_VALUE;
    else if (named == REDACT_NAME_WORD && (str_starts(word, "--") || word.len > LETTERS_MAX))
        kind = REDACT_WORD;
    else if (str_starts(word, "--") && named == REDACT_NAME_PAIR)
        kind = REDACT_PAIR;
    else if (str_starts(word, "--") && named == REDACT_NAME_FILE)
        kind = REDACT_LOOKS;
    if (kind == REDACT_NOTHING) {
        plain(redact, out, word);
        return;
    }
    redact_put(out, word);
    redact->wanted = (unsigned char)kind;
}

/* Of a command whose operands are secrets or values. True when the word was one. */
static bool command_operand(struct redact *redact, struct redact_out *out, struct str word)
{
    const struct redact_command *command = redact->command;
    if (!command) {
        command = redact_command(redact->program, word, redact->last);
        if (!command)
            command = redact_command(redact->other, word, redact->last);
        if (!command)
            return false;
        redact->command = command;
        redact->shown = command->shown - MIN(command->shown, redact->fewer);
        redact->hides = command->hides;
        if (command->names)
            return false;
    }
    if (str_is(word, "-") || (command->pairs && memchr(word.data, '=', word.len)))
        return false; /* what is read from standard input, "username=me" */
    if (redact->shown > 0) {
        redact->shown--;
        return false;
    }
    if (command->hides > 0 && redact->hides == 0)
        return false; /* behind them */
    redact->hides -= redact->hides > 0;
    value(redact, out, command->kind != REDACT_NOTHING ? command->kind : REDACT_VALUE, word);
    return true;
}

/* "/p:WORD" of xfreerdp. */
static bool joined_operand(const struct redact *redact, struct redact_out *out, struct str word)
{
    const char *colon = memchr(word.data, ':', word.len);
    size_t len = colon ? (size_t)(colon + 1 - word.data) : 0;
    if (len == 0 || len == word.len ||
        rule_find(redact, (struct str){word.data, len}) != REDACT_JOINED)
        return false;
    redact_put(out, (struct str){word.data, len});
    redact_hide(out);
    return true;
}

/* Of programs whose operands are statements, names or secrets. True when the word was one. */
static bool operand(struct redact *redact, struct redact_out *out, struct str word)
{
    if (command_operand(redact, out, word) || joined_operand(redact, out, word))
        return true;
    enum redact_kind kind = rule_find(redact, STR(""));
    if (kind == REDACT_SQL && has_blank(word)) {
        redact_sql(out, word);
        return true;
    }
    if (kind == REDACT_USER)
        return !str_is(redact->last, "-H") && !str_is(redact->last, "--header") &&
               redact_user(out, word);
    if (kind == REDACT_LOGIN)
        return redact_login(out, word);
    if (kind != REDACT_NAMED ||
        (str_starts(redact->last, "-") && rule_find(redact, redact->last) != REDACT_FLAG))
        return false;
    enum redact_name name = operand_name(word);
    if (name < REDACT_NAME_FILE)
        return false;
    redact_put(out, word);
    redact->wanted = name == REDACT_NAME_FILE ? REDACT_LOOKS : REDACT_VALUE;
    return true;
}

static bool is_all_of(struct str word, const char *chars)
{
    for (size_t i = 0; i < word.len; i++)
        if (!word.data[i] || !strchr(chars, word.data[i]))
            return false;
    return true;
}

/* What echo and printf write, but for their options, a format of conversions only, and "2>" of
 * "2>&1". */
static bool written(struct redact *redact, struct redact_out *out, struct str word)
{
    bool is_option = str_starts(word, "-") && is_all_of(word, "-neE");
    bool is_format = str_starts(word, "%") && is_all_of(word, "%sbq\\nrt");
    bool redirects = str_ends(word, ">") && is_all_of(word, "12>");
    if (redact->piped == REDACT_NOTHING || !redact->writes || word.len == 0 || is_option ||
        is_format || redirects || str_is(word, "\\\n"))
        return false;
    value(redact, out, redact->piped, word);
    return true;
}

/* "<<< WORD", "<<<WORD", "< <(echo WORD)": what a command is given to read, that asks for a secret
 * or for statements, or hands them on to one that does. */
static bool here_string(struct redact *redact, struct redact_out *out, struct str word)
{
    static const char mark[] = "<<<";
    enum redact_kind kind = redact->reads != REDACT_NOTHING ? redact->reads : redact->piped;
    if (kind != REDACT_NOTHING && str_is(redact->last, "<") &&
        from_command(redact, out, kind, word))
        return true;
    size_t len = str_starts(word, mark) ? strlen(mark) : 0;
    if (kind == REDACT_NOTHING || word.len == len || (len == 0 && !str_ends(redact->last, mark)))
        return false;
    bool quoted = kind == REDACT_SQL && len > 0 && word.len > len + 2 &&
                  strchr("\"'", word.data[len]) && word.data[word.len - 1] == word.data[len];
    len += quoted;
    redact_put(out, (struct str){word.data, len});
    value(redact, out, kind, (struct str){word.data + len, word.len - len - quoted});
    redact_put(out, (struct str){word.data + word.len - quoted, quoted});
    return true;
}

/* 'NAME' of "ENV['NAME']". */
static struct str index_name(struct str word)
{
    while (word.len > 0 && strchr("\"'\\]", word.data[word.len - 1]))
        word.len--;
    return word;
}

static void word_judge(struct redact *redact, struct redact_out *out, struct str word)
{
    enum redact_kind wanted = redact->wanted;
    redact->wanted = REDACT_NOTHING;
    struct str name = redact_base_name(word);
    bool is_option = str_starts(word, "-") && word.len > 1;
    if (redact->program.len == 0 && wanted == REDACT_NOTHING && redact_is_keyword(word)) {
        redact_put(out, word);
        return;
    }
    if (redact->program.len == 0 && wanted == REDACT_NOTHING && !memchr(word.data, '=', word.len)) {
        redact->program = name;
        redact->writes = redact_program_matches("echo printf yes", name);
        plain(redact, out, word);
        return;
    }
    if (redact->program.len > 0 && (written(redact, out, word) || here_string(redact, out, word)))
        return;
    bool by_name = wanted == REDACT_VALUE || wanted == REDACT_WORD || wanted == REDACT_PAIR ||
                   wanted == REDACT_LOOKS || wanted == REDACT_TWO;
    if (wanted != REDACT_NOTHING && !(by_name && str_starts(word, "--"))) {
        value(redact, out, wanted, word);
        return;
    }
    if ((str_is(word, "=") || str_is(word, ":")) &&
        redact_name_kind(index_name(redact->last)) == REDACT_NAME_STRONG) {
        redact_put(out, word);
        redact->wanted = REDACT_HEADER;
        return;
    }
    bool starts = !is_option && program_look(redact, name);
    if (is_option)
        option(redact, out, word);
    else if (starts || (!operand(redact, out, word) && !header(redact, out, word)))
        plain(redact, out, word);
}

void redact_word_into(struct redact *redact, struct redact_out *out, struct str word)
{
    word_judge(redact, out, word);
    redact->last = word;
}

static size_t finish(const struct redact_out *out)
{
    if (out->size > 0)
        out->to[MIN(out->len, out->size - 1)] = '\0';
    return out->len;
}

size_t redact_word(struct redact *redact, struct str word, char *to, size_t size)
{
    struct redact_out out = {.to = to, .size = size, .count = &redact->count};
    redact_word_into(redact, &out, word);
    return finish(&out);
}

size_t redact_text(struct str text, char *to, size_t size, unsigned *count)
{
    struct redact_out out = {.to = to, .size = size, .count = count};
    redact_text_into(&out, text, 0, REDACT_NOTHING);
    return finish(&out);
}

size_t redact_file_name(struct str name, char *to, size_t size)
{
    unsigned count = 0;
    struct redact_out out = {.to = to, .size = size, .count = &count};
    const char *query = memchr(name.data, '?', name.len);
    size_t len = query ? (size_t)(query - name.data) : name.len;
    redact_put(&out, (struct str){name.data, len});
    if (query)
        redact_scan(&out, (struct str){query, name.len - len});
    return finish(&out);
}

const char *redact_line(struct arena *arena, const char *text, unsigned *count)
{
    unsigned found = 0, again = 0;
    size_t len = redact_text(str_from(text), NULL, 0, &found);
    if (found == 0)
        return arena_dup(arena, text);
    char *copy = arena_alloc(arena, len + 1);
    if (!copy)
        return "";
    redact_text(str_from(text), copy, len + 1, &again);
    if (count)
        *count += found;
    return copy;
}

char **redact_argv(struct arena *arena, char *const *argv, unsigned *count)
{
    size_t words = 0;
    while (argv[words])
        words++;
    char **copy = arena_alloc(arena, (words + 1) * sizeof(*copy));
    struct redact redact = REDACT_INIT;
    for (size_t i = 0; copy && i < words; i++) {
        struct redact before = redact; /* the first time only measures */
        size_t len = redact_word(&before, str_from(argv[i]), NULL, 0);
        copy[i] = arena_alloc(arena, len + 1);
        if (!copy[i])
            return NULL;
        redact_word(&redact, str_from(argv[i]), copy[i], len + 1);
    }
    if (copy && count)
        *count += redact.count;
    return copy;
}
