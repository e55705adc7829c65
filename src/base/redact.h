/* Secrets in command lines, replaced by "[redacted]" before anything is stored or printed.
 *
 *     struct redact redact = REDACT_INIT;
 *     while (next word) size = redact_word(&redact, word, buffer, sizeof(buffer));
 *
 * What is a secret is data, in redact_rules.c and redact_names.c: options of known programs (curl's
 * -u, mysql's -pWORD), their operands (vault login WORD), what echo writes into a pipe to one that
 * reads a secret, names (password=, token:, Authorization:), user info of URIs, and known prefixes
 * of keys. What no rule knows is judged by its looks: a run of 24 or more characters out of
 * letters, digits and "+/_-" that has capitals, small letters and digits, and in which at least 30%
 * of neighbours differ in kind (a capital before a small letter, as words have it, not counted).
 * Random base64 has about 45% (95 of 100 keys of 24 characters are found), names of functions and
 * tests about 20%; hashes in hexadecimal, build-ids and UUIDs have only one case and stay, as do
 * paths and symbols.
 *
 * This is a net with a stated mesh, no promise: "app hunter2" cannot be known to be a password.
 * Redacting twice changes nothing. Pure, no allocation but the arena's; time grows with the
 * length of the text, nesting (a shell's -c) is followed four levels deep. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define REDACTED "[redacted]"

struct redact_command;

/* Where in a command line we are. */
struct redact {
    struct str program;   /* the last word that named one we know, or the first word */
    struct str other;     /* one before it that was doubtful: its rules hold, too */
    struct str last;      /* the word before */
    unsigned char wanted; /* what the next word is, by the one before (enum redact_kind) */
    unsigned char depth;
    bool known;                           /* `program` is one with rules */
    bool doubtful;                        /* `program` may have been the value of an option */
    const struct redact_command *command; /* whose operands are secrets; NULL: none yet */
    unsigned shown, hides; /* of its operands so many may still be shown, and are then hidden */
    unsigned fewer;        /* less by so many, after its options */
    unsigned char
        piped; /* what is written is read as this (enum redact_kind): echo WORD | sudo -S */
    unsigned char reads; /* the command itself reads this: sudo -S <<< WORD */
    bool writes;         /* it is one that writes its operands */
    unsigned count;      /* replaced so far */
};

#define REDACT_INIT ((struct redact){0})

/* The word as it may be shown, as snprintf(): what fits is written and ends with NUL, the full
 * length is returned. */
size_t redact_word(struct redact *redact, struct str word, char *to, size_t size);

/* A text with a command line in it, or any other: words are found as a shell would. As above. */
size_t redact_text(struct str text, char *to, size_t size, unsigned *count);

/* The same for what is no command line: the name of a file that was fetched from a URL. Only what
 * follows a '?' is looked at. */
size_t redact_file_name(struct str name, char *to, size_t size);

/* A text into an arena; `count` may be NULL and is added to. "" when out of memory. */
const char *redact_line(struct arena *arena, const char *text, unsigned *count);

/* A copy of argv; NULL when out of memory. */
char **redact_argv(struct arena *arena, char *const *argv, unsigned *count);

/* "name=value" taken apart: is a value of that name a secret? */
bool redact_is_secret_name(struct str name);
