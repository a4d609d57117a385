/* Schedulers of PBS in C under muster: a program that defines
 *
 *     int schedinit(int argc, char *argv[]);    called once, 0 for success
 *     int schedule(int cmd, int connector);     called in each cycle
 *
 * and includes this header in one file is a complete external scheduler:
 *
 *     scheduler_policy = external:/opt/site/scheduler -v
 *
 * The header has `main`, which speaks muster's protocol on standard input and output: print to standard error, which
 * goes to `sched_out`. The connector is the number of the cycle. Everything here is C99 and POSIX.
 */
#ifndef MUSTER_PBS_SCHEDULE_H
#define MUSTER_PBS_SCHEDULE_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCH_ERROR -1
#define SCH_SCHEDULE_NULL 0
#define SCH_SCHEDULE_NEW 1
#define SCH_SCHEDULE_TERM 2
#define SCH_SCHEDULE_TIME 3
#define SCH_SCHEDULE_RECYC 4
#define SCH_SCHEDULE_CMD 5
#define SCH_CONFIGURE 7
#define SCH_QUIT 8
#define SCH_RULESET 9
#define SCH_SCHEDULE_FIRST 10

int schedinit(int argc, char *argv[]);
int schedule(int cmd, int connector);

/* --- Reading JSON, as far as the planner writes it. ------------------------------------------------------------- */

static const char *pbs_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
        at++;
    return at;
}

/* What follows a value. */
static const char *pbs_skip(const char *at)
{
    int depth = 0;
    at = pbs_blanks(at);
    for (; *at; at++) {
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && at[1])
                    at++;
            if (!*at)
                return at;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return at;
            depth--;
        } else if (*at == ',' && depth == 0) {
            return at;
        }
    }
    return at;
}

/* The value of a member of an object, or NULL. */
static inline const char *pbs_member(const char *object, const char *name)
{
    size_t length = strlen(name);
    const char *at = pbs_blanks(object);
    if (*at != '{')
        return NULL;
    at = pbs_blanks(at + 1);
    while (*at == '"') {
        const char *key = at + 1;
        for (at = key; *at && *at != '"'; at++)
            if (*at == '\\' && at[1])
                at++;
        if (!*at)
            return NULL;
        int is_it = (size_t)(at - key) == length && memcmp(key, name, length) == 0;
        at = pbs_blanks(at + 1);
        if (*at != ':')
            return NULL;
        at = pbs_blanks(at + 1);
        if (is_it)
            return at;
        at = pbs_skip(at);
        if (*at != ',')
            return NULL;
        at = pbs_blanks(at + 1);
    }
    return NULL;
}

/* The first element of an array, or the one behind another one; NULL behind the last. */
static inline const char *pbs_next(const char *array, const char *element)
{
    const char *at;
    if (element) {
        at = pbs_skip(element);
        return *at == ',' ? pbs_blanks(at + 1) : NULL;
    }
    at = pbs_blanks(array);
    if (*at != '[')
        return NULL;
    at = pbs_blanks(at + 1);
    return *at == ']' || !*at ? NULL : at;
}

/* Copies a string without its quotes. Returns 0, or -1 if it is none or does not fit; texts with escapes that are not
 * for quotes and backslashes are copied as they are written. */
static inline int pbs_text(const char *value, char *text, size_t size)
{
    size_t length = 0;
    if (!value || *value != '"' || size == 0)
        return -1;
    for (value++; *value && *value != '"'; value++) {
        if (*value == '\\' && (value[1] == '"' || value[1] == '\\'))
            value++;
        if (length + 1 >= size)
            return -1;
        text[length++] = *value;
    }
    text[length] = 0;
    return *value == '"' ? 0 : -1;
}

/* --- Asking the server. ----------------------------------------------------------------------------------------- */

static char *pbs_line; /* the last line from the planner */
static size_t pbs_line_size;
static unsigned long pbs_request;

/* The next line; 0 at the end of input. */
static int pbs_hear(void)
{
    return getline(&pbs_line, &pbs_line_size, stdin) > 0;
}

static void pbs_say_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 32)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

/* Sends a request with one or two texts, and gives the data of the reply, valid until the next request; NULL if it was
 * refused. */
static const char *pbs_ask(int connector, const char *kind, const char *name, const char *value, const char *name2,
                           const char *value2)
{
    static const char nothing[] = "{}";
    const char *ok, *data;
    printf("{\"t\":\"%s\",\"id\":%lu,\"seq\":%d", kind, ++pbs_request, connector);
    if (value) {
        printf(",\"%s\":", name);
        pbs_say_text(value);
    }
    if (value2) {
        printf(",\"%s\":", name2);
        pbs_say_text(value2);
    }
    puts("}");
    fflush(stdout);
    if (!pbs_hear())
        exit(1);
    ok = pbs_member(pbs_line, "ok");
    if (!ok || strncmp(ok, "true", 4) != 0)
        return NULL;
    data = pbs_member(pbs_line, "data");
    return data ? data : nothing;
}

/* What there is, as JSON: `server`, `queues`, `jobs`, `nodes` or `selstat`. The caller frees it; NULL if refused. */
static inline char *pbs_stat(int connector, const char *what)
{
    const char *data = pbs_ask(connector, "stat", "what", what, NULL, NULL);
    return data ? strdup(data) : NULL;
}

/* Starts a job; `place` may be NULL. Returns 0, or -1 if it was refused. */
static inline int pbs_runjob(int connector, const char *job, const char *place)
{
    return pbs_ask(connector, "run", "job", job, "place", place) ? 0 : -1;
}

/* The same, without waiting for the start. */
static inline int pbs_asyrunjob(int connector, const char *job, const char *place)
{
    return pbs_ask(connector, "asyrun", "job", job, "place", place) ? 0 : -1;
}

static inline int pbs_rerunjob(int connector, const char *job)
{
    return pbs_ask(connector, "rerun", "job", job, NULL, NULL) ? 0 : -1;
}

static inline int pbs_deljob(int connector, const char *job)
{
    return pbs_ask(connector, "delete", "job", job, NULL, NULL) ? 0 : -1;
}

/* `kinds` of u, o and s, or NULL. */
static inline int pbs_holdjob(int connector, const char *job, const char *kinds)
{
    return pbs_ask(connector, "hold", "job", job, "kinds", kinds) ? 0 : -1;
}

static inline int pbs_rlsjob(int connector, const char *job, const char *kinds)
{
    return pbs_ask(connector, "release", "job", job, "kinds", kinds) ? 0 : -1;
}

static inline int pbs_sigjob(int connector, const char *job, const char *signal)
{
    return pbs_ask(connector, "signal", "job", job, "signal", signal) ? 0 : -1;
}

static inline int pbs_movejob(int connector, const char *job, const char *queue)
{
    return pbs_ask(connector, "move", "job", job, "to", queue) ? 0 : -1;
}

static inline int pbs_comment(int connector, const char *job, const char *text)
{
    return pbs_ask(connector, "comment", "job", job, "text", text) ? 0 : -1;
}

/* Why the last request was refused, as JSON, or NULL. */
static inline const char *pbs_refusal(void)
{
    return pbs_line ? pbs_member(pbs_line, "code") : NULL;
}

/* --- The loop. -------------------------------------------------------------------------------------------------- */

int main(int argc, char *argv[])
{
    char kind[16];
    while (pbs_hear()) {
        if (pbs_text(pbs_member(pbs_line, "t"), kind, sizeof kind) != 0)
            continue;
        if (strcmp(kind, "init") == 0) {
            if (schedinit(argc, argv) != 0)
                return 1;
            puts("{\"t\":\"ready\",\"v\":1}");
            fflush(stdout);
        } else if (strcmp(kind, "cycle") == 0) {
            const char *code = pbs_member(pbs_line, "code"), *seq = pbs_member(pbs_line, "seq");
            int connector = seq ? atoi(seq) : 0;
            schedule(code ? atoi(code) : SCH_ERROR, connector);
            printf("{\"t\":\"end\",\"seq\":%d}\n", connector);
            fflush(stdout);
        } else if (strcmp(kind, "quit") == 0) {
            return 0;
        }
    }
    return 0;
}

#endif
