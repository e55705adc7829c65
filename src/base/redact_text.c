/* A text with command lines in it: words as a shell finds them, and what is piped into whom. */
#include "base/redact_parts.h"

/* A text: words are separated by blanks and by what separates commands; quotes and "$(…)" keep
 * together. */
struct cutter {
    struct str text;
    size_t at;
    bool no_single, no_double, no_escaped; /* none of these is closed any more */
    bool flat;                             /* brackets only separate */
    size_t open_from;                      /* 1 + where the first "$(" is that is not closed */
    size_t tick_from;                      /* the same of "`" */
};

/* How many characters the quote at `at` has: ', " or, of a text in quotes, \". 0: none is there. */
static size_t quote_len(struct str text, size_t at)
{
    bool escaped = at + 1 < text.len && text.data[at] == '\\' && text.data[at + 1] == '"';
    return escaped ? 2 : text.data[at] == '"' || text.data[at] == '\'';
}

/* Behind the closing quote; 0: it is not closed, and so an ordinary character. */
static size_t quote_end(struct cutter *c, size_t at)
{
    size_t len = quote_len(c->text, at);
    const char *quote = c->text.data + at;
    bool *none = len == 2 ? &c->no_escaped : *quote == '\'' ? &c->no_single : &c->no_double;
    for (size_t i = at + len; !*none && i + len <= c->text.len; i++) {
        if (memcmp(c->text.data + i, quote, len) == 0)
            return i + len;
        if (*quote != '\'' && c->text.data[i] == '\\')
            i++;
    }
    *none = true;
    return 0;
}

/* Behind the bracket that closes the one at `at`; 0: none does. */
static size_t group_end(struct cutter c, size_t at)
{
    char open = c.text.data[at], close = open == '(' ? ')' : '}';
    unsigned depth = 1;
    for (size_t i = at + 1; i < c.text.len;) {
        char ch = c.text.data[i];
        size_t end = quote_len(c.text, i) > 0 ? quote_end(&c, i) : 0;
        if (end == 0 && ch == '\\')
            end = i + 2;
        if (end == 0 && ch == close && --depth == 0)
            return i + 1;
        depth += end == 0 && ch == open;
        i = end ? end : i + 1;
    }
    return 0;
}

/* Behind "$(…)", "<(…)", ">(…)" or "`…`", that begins at `at` and whose inside does at *ret; 0:
 * none does. What is not closed is looked for once. */
static size_t substitution_end(struct cutter *c, size_t at, size_t *ret)
{
    char ch = c->text.data[at];
    bool ticks = ch == '`';
    bool opens = ch && strchr("$<>", ch) && at + 1 < c->text.len && c->text.data[at + 1] == '(';
    size_t *open_from = ticks ? &c->tick_from : &c->open_from, end = 0;
    if (c->flat || !(ticks || opens) || (*open_from > 0 && at + 1 >= *open_from))
        return 0;
    *ret = at + (ticks ? 1 : 2);
    if (opens)
        end = group_end(*c, at + 1);
    for (size_t i = at + 1; ticks && end == 0 && i < c->text.len; i++) {
        if (c->text.data[i] == '`')
            end = i + 1;
        i += c->text.data[i] == '\\';
    }
    if (end == 0)
        *open_from = at + 1;
    return end;
}

static struct str token_cut(struct cutter *c)
{
    size_t start = c->at, inner;
    while (c->at < c->text.len) {
        char ch = c->text.data[c->at];
        if (ch == '\0' || strchr(" \t\n;|&()", ch))
            break;
        size_t end = quote_len(c->text, c->at) > 0 ? quote_end(c, c->at)
                                                   : substitution_end(c, c->at, &inner);
        if (end == 0 && ch == '\\' && c->at + 1 < c->text.len)
            end = c->at + 2;
        c->at = end ? end : c->at + 1;
    }
    return (struct str){c->text.data + start, c->at - start};
}

/* The end of a value that goes on at `at`, behind a part that a command writes. */
static size_t value_rest(struct cutter *c, size_t at)
{
    size_t inner;
    while (at < c->text.len && !strchr("&;#\"'` \t\n\\|<>", c->text.data[at])) {
        size_t end = substitution_end(c, at, &inner);
        at = end ? end : at + 1;
    }
    return at;
}

/* A token with what other commands write in it: those commands. False: it has none. */
static bool substituted(struct redact_out *out, struct cutter c, struct str token, unsigned depth)
{
    size_t from = 0, inner = 0;
    c = (struct cutter){.text = token, .flat = c.flat};
    while (c.at < token.len) {
        size_t end = substitution_end(&c, c.at, &inner);
        if (end == 0) {
            c.at++;
            continue;
        }
        if (redact_names_secret((struct str){token.data + from, c.at - from})) {
            redact_scan(out, (struct str){token.data + from, c.at - from});
            redact_hide(out);
            from = end = value_rest(&c, end);
        } else {
            redact_scan(out, (struct str){token.data + from, inner - from});
            redact_text_into(out, (struct str){token.data + inner, end - 1 - inner}, depth + 1,
                             REDACT_NOTHING);
            from = end - 1;
        }
        c.at = end;
    }
    if (from > 0)
        redact_scan(out, (struct str){token.data + from, token.len - from});
    return from > 0;
}

static void token_redact(struct redact *redact, struct redact_out *out, struct str token)
{
    struct cutter cutter = {.text = token};
    size_t len = quote_len(token, 0);
    if (len > 0 && quote_end(&cutter, 0) == token.len) {
        redact_put(out, (struct str){token.data, len});
        redact_word_into(redact, out, (struct str){token.data + len, token.len - 2 * len});
        redact_put(out, (struct str){token.data, len});
    } else {
        redact_word_into(redact, out, token);
    }
}

/* Commands with '|' between them. */
struct pipeline {
    size_t end;      /* behind the last command that was looked at */
    size_t value_at; /* where the last begins that reads a secret; 0: none does */
    size_t sql_at;   /* and the last that reads statements */
};

enum { GROUPS_MAX = 4 };

/* Commands in brackets, each in the one before. */
struct groups {
    unsigned count;
    struct {
        size_t end;
        enum redact_kind piped; /* how what they write is read */
        struct pipeline pipeline;
    } all[GROUPS_MAX];
};

static struct str unquoted(struct str token)
{
    struct cutter cutter = {.text = token};
    size_t len = quote_len(token, 0);
    if (len == 0 || quote_end(&cutter, 0) != token.len)
        return token;
    return (struct str){token.data + len, token.len - 2 * len};
}

/* Of two ways to read the same. */
static enum redact_kind stricter(enum redact_kind a, enum redact_kind b)
{
    return a == REDACT_VALUE || b == REDACT_NOTHING ? a : b;
}

/* A command, read ahead. */
struct look {
    struct str program, last;
    unsigned operands, options; /* of the program so far; options that may have a value */
    bool over;                  /* what follows belongs to what the program starts */
    enum redact_kind reads;
};

/* "-kS": letters of options without a value, each of which may be the one. */
static enum redact_kind letters_read(struct str program, struct str word)
{
    enum redact_kind reads = REDACT_NOTHING;
    for (size_t i = 1; i < word.len && word.data[0] == '-' && word.data[1] != '-'; i++) {
        char letter[] = {'-', word.data[i]};
        reads = stricter(reads, redact_reads(program, (struct str){letter, 2}, STR("")));
    }
    return reads;
}

/* The program, or one that it starts: "docker exec -i NAME psql". True when the word is one. */
static bool look_program(struct look *look, struct str word)
{
    unsigned before = 0;
    struct str name = redact_base_name(word);
    enum redact_kind reads = redact_reads(name, STR(""), STR(""));
    bool known = reads != REDACT_NOTHING || redact_program_is_known(name, look->last);
    if (look->program.len > 0 &&
        (!known || !redact_starts_others(look->program, &before) || word.data[0] == '-' ||
         look->operands < before || look->operands > before + look->options))
        return false;
    look->program = name;
    look->operands = look->options = 0;
    look->over = false;
    look->reads = stricter(look->reads, reads);
    return true;
}

static void look_word(struct look *look, struct str word)
{
    const char *equals = memchr(word.data, '=', word.len);
    size_t len = equals ? (size_t)(equals - word.data) : word.len;
    struct str name = {word.data, len}, rest = STR("");
    if (equals)
        rest = (struct str){equals + 1, word.len - len - 1};
    if (!equals &&
        ((look->program.len == 0 && redact_is_keyword(word)) || look_program(look, word)))
        return;
    const char *flags = redact_flags_of(look->program);
    bool valued = look->last.len > 1 && look->last.data[0] == '-' &&
                  (!flags || !strchr(flags, look->last.data[look->last.len - 1]));
    unsigned before;
    if (word.data[0] == '-') {
        look->options += word.len > 1 && !equals &&
                         !(flags && strchr(flags, word.data[word.len - 1]));
    } else {
        look->operands++;
        look->over |= flags && !valued && redact_starts_others(look->program, &before);
    }
    struct str program = look->over ? STR("") : look->program; /* what holds for all, still does */
    enum redact_kind reads = redact_reads(program, name, rest);
    if (flags && !look->over)
        reads = stricter(reads, letters_read(program, word));
    reads = stricter(reads, redact_reads(program, look->last, word));
    look->reads = stricter(look->reads, reads);
}

/* One command, up to what ends it: what does it read from its standard input? */
static enum redact_kind command_reads(struct cutter *c)
{
    struct look look = {0};
    while (c->at < c->text.len && !strchr(";|&()\n", c->text.data[c->at])) {
        struct str token = token_cut(c), word = unquoted(token);
        c->at += token.len == 0; /* a blank */
        if (word.len == 0)
            continue;
        look_word(&look, word);
        look.last = word;
    }
    return look.reads;
}

/* How what the command at `c` writes is read. The pipeline is looked at once, at its first
 * command. */
static enum redact_kind piped_as(struct cutter *at, struct pipeline *pipeline)
{
    struct cutter c = *at;
    size_t start = c.at, begin = c.at;
    while (start >= pipeline->end) {
        enum redact_kind reads = command_reads(&c);
        if (begin == start)
            *pipeline = (struct pipeline){0};
        if (reads == REDACT_VALUE)
            pipeline->value_at = begin;
        else if (reads == REDACT_SQL)
            pipeline->sql_at = begin;
        struct str rest = {c.text.data + c.at, c.text.len - c.at};
        bool redirects = str_starts(rest, "&>") ||
                         (str_starts(rest, "&") && c.at > start && rest.data[-1] == '>');
        if (!redirects && (!str_starts(rest, "|") || str_starts(rest, "||"))) {
            pipeline->end = c.at > start ? c.at : start + 1;
            break;
        }
        c.at += str_starts(rest, "|&") ? 2 : 1;
        while (!redirects && c.at < c.text.len && strchr(" \t\n", c.text.data[c.at]))
            c.at++;
        begin = redirects ? begin : c.at;
    }
    at->open_from = c.open_from;
    at->tick_from = c.tick_from;
    return start < pipeline->value_at ? REDACT_VALUE
           : start < pipeline->sql_at ? REDACT_SQL
                                      : REDACT_NOTHING;
}

/* "(" or "{" in front of commands: how is what they write together read? */
static void group_enter(struct groups *groups, struct cutter *at)
{
    if (groups->count == GROUPS_MAX || at->flat)
        return;
    struct cutter c = *at;
    size_t end = group_end(c, c.at);
    enum redact_kind piped = REDACT_NOTHING;
    if (end > 0) {
        c.at = end;
        piped = piped_as(&c, &groups->all[groups->count].pipeline);
    }
    if (groups->count > 0)
        piped = stricter(piped, groups->all[groups->count - 1].piped);
    groups->all[groups->count].end = end > 0 ? end : at->text.len;
    groups->all[groups->count++].piped = piped;
}

/* What follows a command: lines up to one, that it reads. */
struct heredoc {
    struct str end;
    enum redact_kind kind;
};

/* The word that ends "<<EOF", "<<-'EOF'" or "<< EOF" of a command that reads a secret. */
static struct str heredoc_end(const struct redact *redact, struct str token)
{
    bool spaced = str_is(redact->last, "<<") || str_is(redact->last, "<<-");
    if ((redact->reads == REDACT_NOTHING && redact->piped == REDACT_NOTHING) ||
        str_starts(token, "<<<") || !(spaced || str_starts(token, "<<")))
        return (struct str){0};
    size_t skip = spaced ? 0 : 2;
    skip += !spaced && token.len > skip && token.data[skip] == '-';
    return unquoted((struct str){token.data + skip, token.len - skip});
}

/* What stands between the lines, up to the one that is its end. */
static void heredoc_redact(struct redact_out *out, struct cutter *c, struct heredoc heredoc)
{
    struct str rest = {c->text.data + c->at, c->text.len - c->at};
    while (rest.len > 0) {
        struct str line = str_cut(&rest, '\n');
        while (str_starts(line, "\t"))
            line = (struct str){line.data + 1, line.len - 1};
        if (!str_eq(line, heredoc.end))
            continue;
        rest = line;
        break;
    }
    size_t at = rest.len > 0 ? (size_t)(rest.data - c->text.data) : c->text.len;
    if (at > c->at && heredoc.kind == REDACT_SQL) {
        redact_sql(out, (struct str){c->text.data + c->at, at - c->at});
    } else if (at > c->at) {
        redact_hide(out);
        if (rest.len > 0)
            redact_put(out, STR("\n"));
    }
    c->at = at;
}

/* Before the first word of a command: what comes, and what is in brackets. */
static void command_begin(struct redact *redact, struct cutter *cutter, struct pipeline *pipeline,
                          enum redact_kind around)
{
    redact->piped = (unsigned char)stricter(piped_as(cutter, pipeline), around);
    struct cutter ahead = *cutter;
    redact->reads = (unsigned char)command_reads(&ahead);
    cutter->open_from = ahead.open_from;
    cutter->tick_from = ahead.tick_from;
}

static enum redact_kind groups_around(struct groups *groups, size_t at, enum redact_kind piped)
{
    while (groups->count > 0 && groups->all[groups->count - 1].end <= at)
        groups->count--;
    return groups->count > 0 ? stricter(groups->all[groups->count - 1].piped, piped) : piped;
}

static void text_words(struct redact_out *out, struct cutter cutter, unsigned depth,
                       enum redact_kind piped)
{
    struct redact redact = {.depth = (unsigned char)depth};
    struct str text = cutter.text;
    struct pipeline pipeline = {0};
    struct groups groups = {0};
    struct heredoc heredoc = {0};
    bool begins = true;
    while (cutter.at < text.len) {
        char c = text.data[cutter.at];
        if (begins && c != '\0' && strchr("({", c))
            group_enter(&groups, &cutter);
        if (begins && c != '\0' && !strchr(" \t\n;|&()", c)) {
            command_begin(&redact, &cutter, &pipeline, groups_around(&groups, cutter.at, piped));
            begins = false;
        }
        struct str token = token_cut(&cutter);
        if (token.len > 0) {
            struct str end = heredoc_end(&redact, token);
            if (end.len > 0)
                heredoc = (struct heredoc){
                    end, stricter((enum redact_kind)redact.reads, (enum redact_kind)redact.piped)};
            token_redact(&redact, out, token);
            continue;
        }
        redact_put(out, (struct str){text.data + cutter.at++, 1});
        if (c == '\0' || !strchr(";|&()\n", c))
            continue;
        if (c == '\n' && heredoc.end.len > 0) {
            heredoc_redact(out, &cutter, heredoc);
            heredoc = (struct heredoc){0};
        }
        /* Another command; but the value of "password:" may stand on the next line of a JSON text.
         */
        bool goes_on = c == '\n' && redact.wanted == REDACT_HEADER;
        redact = (struct redact){.depth = (unsigned char)depth,
                                 .wanted = goes_on ? REDACT_HEADER : REDACT_NOTHING};
        begins = true;
    }
}

void redact_text_into(struct redact_out *out, struct str text, unsigned depth,
                      enum redact_kind piped)
{
    struct cutter cutter = {.text = text, .flat = depth >= REDACT_DEPTH_MAX}, first = cutter;
    size_t len = quote_len(text, 0);
    bool quoted = text.len > 0 && len > 0 &&
                  quote_end(&(struct cutter){.text = text}, 0) == text.len;
    if (!quoted && text.len > 0 && token_cut(&first).len == text.len &&
        substituted(out, first, text, depth))
        return;
    text_words(out, cutter, depth, piped);
}
