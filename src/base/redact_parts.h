/* Shared by the files of redact.h. */
#pragma once

#include "base/redact.h"

enum redact_kind {
    REDACT_NOTHING, /* the next word is like any other */
    REDACT_VALUE,   /* a secret */
    REDACT_BODY,    /* the same, unless it names a file: "@file" */
    REDACT_BESIDE,  /* a secret only in the same word: mysql's -pWORD, --password=WORD */
    REDACT_PHRASE,  /* openssl's pass:WORD, not file:NAME and env:NAME */
    REDACT_SQL,     /* its literals */
    REDACT_HEADER,  /* what follows "Authorization:" in a text without quotes */
    REDACT_FLAG,    /* an option that looks like a secret's and has no value */
    REDACT_USER,    /* "user:word@host": what stands before the '@' */
    REDACT_LOGIN,   /* "user/word@service" of Oracle */
    REDACT_WORD,    /* --pass: a secret, unless it is one digit */
    REDACT_PAIR,    /* --auth: a secret with a ':' in it */
    REDACT_NAMED,   /* a name: what follows that of a secret is one (jq's --arg) */
    REDACT_KEY,     /* openssl's "key:WORD", not "digest:NAME" */
    REDACT_OTHER,   /* a value like any other, and no operand */
    REDACT_FEWER,   /* has no value, and one operand less is shown */
    REDACT_ASSIGN,  /* "name=WORD", not "name=@file" */
    REDACT_LOOKS,   /* a secret, unless it is a file's name, a number or a word */
    REDACT_TWO,     /* two words, each a secret */
    REDACT_JOINED,  /* begins an operand: xfreerdp's /p:WORD */
    REDACT_FROM,    /* "<(echo WORD)": what is written there */
};

/* Options of programs, separated by blanks; a program's name may end with '*'. An option "" is
 * for words that are none. */
struct redact_rule {
    const char *programs, *options;
    enum redact_kind kind;
};
extern const struct redact_rule redact_rules[]; /* ends with NULL programs */

/* Letters of a program that may stand before another in one word: curl's -sSu. NULL: none. */
const char *redact_flags_of(struct str program);
/* Behind `last`. */
bool redact_program_is_known(struct str program, struct str last);
bool redact_program_matches(const char *programs, struct str program);

/* Programs whose operands are secrets or values, but for what stands first. */
struct redact_command {
    const char *programs, *names; /* NULL: the operands of the program itself */
    const char *behind;           /* the word before such a name; NULL: any */
    unsigned shown;               /* operands that may be shown */
    unsigned hides;               /* so many behind them are secrets; 0: all */
    bool pairs;                   /* "name=value" is no such operand */
    enum redact_kind kind;        /* of these operands; 0: secrets */
};
/* The one that `word` names, an operand behind `last`. NULL: not one with secrets. */
const struct redact_command *redact_command(struct str program, struct str word, struct str last);

/* What the program reads from its standard input, by this option and the word behind it: nothing,
 * REDACT_VALUE or REDACT_SQL. */
enum redact_kind redact_reads(struct str program, struct str option, struct str value);
/* Does it start another program, and behind how many operands? */
bool redact_starts_others(struct str program, unsigned *ret_operands);
/* "{", "then": a command follows. */
bool redact_is_keyword(struct str word);
bool redact_list_has(const char *list, struct str word); /* separated by blanks */
/* "curl" of "/usr/bin/curl". */
struct str redact_base_name(struct str word);
/* "key" of "key:WORD", of openssl. */
bool redact_is_key_option(struct str name);

/* WEAK: a secret in "name=value"; FILE: also in "--name value" (REDACT_LOOKS), PAIR and WORD: also
 * there (REDACT_PAIR, _WORD), WORD behind one '-', too, if the name is longer than a few letters
 * written together; STRONG: in "-name value" and "name: value", too. */
enum redact_name {
    REDACT_NAME_PLAIN,
    REDACT_NAME_WEAK,
    REDACT_NAME_FILE,
    REDACT_NAME_PAIR,
    REDACT_NAME_WORD,
    REDACT_NAME_STRONG
};
enum redact_name redact_name_kind(struct str name);
/* Of "name=value": by its name, or an environment's NAME_KEY and its value's looks. Only the
 * begin of the value is looked at. */
bool redact_is_secret_pair(struct str name, struct str value);
/* No path, name of a file, number or word. */
bool redact_is_keylike(struct str text);
/* The length of an address in front of a secret path, at the begin of `text`; 0: none. */
size_t redact_place_len(struct str text);
/* "Bearer", "Basic": stands before the secret. */
bool redact_is_scheme(struct str word);
/* The length of a key with a known prefix, at the begin of `text`; 0: none. */
size_t redact_key_len(struct str text);

struct redact_out {
    char *to;
    size_t size, len;
    size_t hidden_to; /* the end of what was hidden last */
    unsigned *count;
};
void redact_put(struct redact_out *out, struct str text);
void redact_hide(struct redact_out *out);

/* Secrets within a word. True when it ends with "name:" or "name=" of a secret that is then the
 * next word. */
bool redact_scan(struct redact_out *out, struct str word);
void redact_sql(struct redact_out *out, struct str text);
/* "user:word@…" without a scheme, and "user/word@…". False: the word is none, nothing was written.
 */
bool redact_user(struct redact_out *out, struct str word);
bool redact_login(struct redact_out *out, struct str word);

/* One word of a command line. */
void redact_word_into(struct redact *redact, struct redact_out *out, struct str word);
/* A text with command lines, nested so deep; what is written there is read as `piped`
 * (REDACT_NOTHING, _VALUE, _SQL). */
enum { REDACT_DEPTH_MAX = 4 };
void redact_text_into(struct redact_out *out, struct str text, unsigned depth,
                      enum redact_kind piped);
/* "name=" or "name:" of a secret, at the end. */
bool redact_names_secret(struct str before);
