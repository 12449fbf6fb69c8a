/* The yardstick: run COMMAND by /bin/sh -c N times, K in flight, and record nothing.
 * usage: raw N K COMMAND     prints the seconds taken */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int left = atoi(argv[1]), slots = atoi(argv[2]), live = 0;
    char *args[] = {"sh", "-c", argv[3], NULL};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (left > 0 || live > 0) {
        while (left > 0 && live < slots) {
            pid_t pid;
            if (posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ) != 0) return 1;
            left--;
            live++;
        }
        if (wait(NULL) > 0) live--;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9);
    return 0;
}
