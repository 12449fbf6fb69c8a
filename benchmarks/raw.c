/* The yardstick: run COMMAND by SHELL -c N times, K in flight, and record nothing.
 * usage: raw N K SHELL COMMAND     prints the seconds taken */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Write the absolute path of a program to FOUND, so that no folder is searched while time is taken. */
static int find(const char *name, char *found, size_t size) {
    char *path = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
    for (char *folder = path ? strtok(path, ":") : NULL; folder; folder = strtok(NULL, ":"))
        if (snprintf(found, size, "%s/%s", folder, name) < (int)size && access(found, X_OK) == 0) return 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int left = atoi(argv[1]), slots = atoi(argv[2]), live = 0;
    char *args[] = {argv[3], "-c", argv[4], NULL};
    char shell[4096];
    if (find(argv[3], shell, sizeof shell) != 0) return 2;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (left > 0 || live > 0) {
        while (left > 0 && live < slots) {
            pid_t pid;
            if (posix_spawn(&pid, shell, NULL, NULL, args, environ) != 0) return 1;
            left--;
            live++;
        }
        if (wait(NULL) > 0) live--;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9);
    return 0;
}
