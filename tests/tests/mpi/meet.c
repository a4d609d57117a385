/* Two tasks that meet by PMI-1: twice at once, and a third time when the file exists that the argument names. What one has put
 * before the third fence the other one gets after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int manager;
static char answer[4096];

/* Sends a line and waits for the one that answers it. */
static void ask(const char *line)
{
    size_t length = 0;

    if (write(manager, line, strlen(line)) != (ssize_t)strlen(line))
        exit(1);
    do {
        if (length + 1 == sizeof answer || read(manager, answer + length, 1) != 1)
            exit(1);
    } while (answer[length++] != '\n');
    answer[length] = 0;
}

int main(int argc, char **argv)
{
    const char *descriptor = getenv("PMI_FD"), *rank = getenv("PMI_RANK");
    char text[256], *value;

    if (argc < 2 || !descriptor || !rank)
        return 2;
    manager = atoi(descriptor);
    ask("cmd=init pmi_version=1 pmi_subversion=1\n");
    ask("cmd=barrier_in\n");
    ask("cmd=barrier_in\n");
    snprintf(text, sizeof text, "met.%s", rank);
    fclose(fopen(text, "w"));
    while (access(argv[1], F_OK))
        usleep(20000);
    snprintf(text, sizeof text, "cmd=put kvsname=s key=of-%s value=%s\n", rank, rank);
    ask(text);
    ask("cmd=barrier_in\n");
    snprintf(text, sizeof text, "cmd=get kvsname=s key=of-%d\n", 1 - atoi(rank));
    ask(text);
    value = strstr(answer, "value=");
    printf("%s: %.1s has come\n", rank, value ? value + 6 : "nobody");
    ask("cmd=finalize\n");
    return 0;
}
