/* The tables of a run, the same on the screen, in its JSON, in the files and on the page. Columns
 * for machines have numbers; those for people say them with their intervals. */
#pragma once

#include "analyze/interpretation.h"

/* "412 ms (380 to 450)"; "n/a" with the reason where it is not known. */
const char *run_estimate_text(struct arena *arena, struct estimate estimate);
/* "saves 412 ms (380 to 450) of 980 ms". */
const char *run_gain_text(struct arena *arena, const struct interpretation *run,
                          const struct finding *finding);
/* Paths that are long by their ends: "fsync of …/journal.txt". For people only. */
const char *run_paths_shortened(struct arena *arena, const char *text);
/* The wall time with that finding mended. */
struct estimate run_after(const struct interpretation *run, const struct finding *finding);
/* How many times as fast it could get at most: "1.25x". */
const char *run_ceiling_text(struct arena *arena, const struct finding *finding);
/* A time in ms for machines; n/a where it is not known. */
struct value run_ms(double ns, const char *reason);
/* A share of the wall time in percent. */
struct value run_pct(double share, const char *reason);

/* M21. `max` rows are shown to people; 0: all. */
struct value run_hotspot_table(struct arena *arena, const struct interpretation *run, size_t max);
/* Every suspicion about the program with its verdict, and all that it rests on: for machines. */
struct value run_suspicion_table(struct arena *arena, const struct interpretation *run);
/* Confirmed ones with their why-chains, for people; at most `max`. */
struct value run_confirmed_table(struct arena *arena, const struct interpretation *run, size_t max);
/* What was asked of others, the most time first; `max` rows for people. Times are those of the
 * recording of calls, scaled to the baseline: of all threads together. */
struct value run_request_table(struct arena *arena, const struct interpretation *run, size_t max);
/* What is stated apart: context or environment, whatever its verdict, for machines; and those that
 * are confirmed in lines for people. Returns how many these are. */
struct value run_apart_table(struct arena *arena, const struct interpretation *run,
                             enum finding_class class);
size_t run_apart_lines(struct arena *arena, const struct interpretation *run,
                       enum finding_class class, struct value *ret);
struct value run_ledger_table(struct arena *arena, const struct interpretation *run);
/* By verdict, in a line each: for people. */
struct value run_ledger_brief(struct arena *arena, const struct interpretation *run);
/* M28: what mending is worth. */
struct value run_opportunity_table(struct arena *arena, const struct interpretation *run,
                                   size_t max);
/* Everything that is confirmed, mended: a map for machines, and a sentence, NULL where there are
 * fewer than two or nothing is advised. */
struct value run_together(struct arena *arena, const struct interpretation *run);
const char *run_together_text(struct arena *arena, const struct interpretation *run);
struct value run_wrong_tool_table(struct arena *arena, const struct interpretation *run);

/* {"sampling": {"verdict": "supports", "evidence": "…"}, "tracing": …}. */
struct value run_angles(struct arena *arena, const struct angle_word *words);
/* What was done to make sure, in a sentence: what each angle says, or why it was dismissed. */
const char *run_verification(struct arena *arena, const struct finding *finding);
/* "/src/parse.c:41", or the image; "" when the place is not known, or inside of an interpreter. */
const char *run_source(struct arena *arena, const struct place *place);
/* Why run_source() has nothing: in an interpreter no line of it would be right. */
const char *run_source_na(struct arena *arena, const struct place *place);
/* Facts by name; and every fact with where it comes from. */
struct value run_facts_map(struct arena *arena, const struct finding *finding);
struct value run_facts_list(struct arena *arena, const struct finding *finding);
/* Further places with the same trouble (M25). */
struct value run_affected_list(struct arena *arena, const struct finding *finding);
/* "a → b → c": the chain of a finding in a line or two, below its title; "" without one.
 * Of a long one the ends. */
const char *run_why_line(struct arena *arena, const struct finding *finding);
/* The command that shows what the chain does not: the finding's own, or the usual one. */
const char *run_next_look(struct arena *arena, const struct interpretation *run,
                          const struct finding *finding);
/* How many that are about the program have a verdict. */
size_t run_verdicts(const struct interpretation *run, enum finding_verdict verdict);
