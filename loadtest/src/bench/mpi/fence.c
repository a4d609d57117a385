/* Speaks PMI-1 with its process manager: each task puts a pair, meets the others in a fence, and so on for as many fences
 * as the first argument says. The task of rank 0 prints the time of each fence in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int manager;

/* Sends a line and waits for the one that answers it. */
static void ask(const char *line)
{
    char answer[4096];
    size_t length = 0;

    if (write(manager, line, strlen(line)) != (ssize_t)strlen(line))
        exit(1);
    do {
        if (length == sizeof answer || read(manager, answer + length, 1) != 1)
            exit(1);
    } while (answer[length++] != '\n');
}

static double microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    int fences = argc > 1 ? atoi(argv[1]) : 1;
    const char *descriptor = getenv("PMI_FD"), *rank = getenv("PMI_RANK");
    char line[256];

    if (!descriptor || !rank)
        return 2;
    manager = atoi(descriptor);
    ask("cmd=init pmi_version=1 pmi_subversion=1\n");
    for (int fence = 0; fence < fences; fence++) {
        snprintf(line, sizeof line, "cmd=put kvsname=s key=address-%s-%d value=%0100d\n", rank, fence, fence);
        ask(line);
        /* All are there before the clock runs: this one measures the fence, not who is late. */
        ask("cmd=barrier_in\n");
        double begin = microseconds();
        ask("cmd=barrier_in\n");
        if (!strcmp(rank, "0"))
            printf("%.0f\n", microseconds() - begin);
    }
    ask("cmd=finalize\n");
    return 0;
}
