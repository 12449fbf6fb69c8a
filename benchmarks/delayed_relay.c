/* A relay in front of a Unix socket that delays every byte, as a network does.
 *
 * delayed_relay SOCKET MILLISECONDS listens on a free port of the loopback interface, prints the port, and passes each
 * connection on to the socket. Each direction takes half of the milliseconds. A thread reads the pieces of a direction
 * and another one writes each piece when it is due, so that the relay takes little CPU time from what is measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES (256 * 1024)

struct piece {
    struct timespec due;
    ssize_t size; /* 0 at the end of the stream */
    struct piece *next;
    char bytes[];
};

struct direction {
    int from, to;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct piece *first, **last;
};

static struct sockaddr_un target = {.sun_family = AF_UNIX};
static long delay_ns;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *read_pieces(void *argument) {
    struct direction *way = argument;
    char *buffer = malloc(CHUNK_BYTES);
    ssize_t size;
    do {
        while ((size = read(way->from, buffer, CHUNK_BYTES)) < 0 && errno == EINTR) {
        }
        if (size < 0) {
            size = 0;
        }
        struct piece *piece = malloc(sizeof *piece + size);
        clock_gettime(CLOCK_MONOTONIC, &piece->due);
        piece->due.tv_nsec += delay_ns;
        piece->due.tv_sec += piece->due.tv_nsec / 1000000000;
        piece->due.tv_nsec %= 1000000000;
        piece->size = size;
        piece->next = NULL;
        memcpy(piece->bytes, buffer, size);
        pthread_mutex_lock(&way->lock);
        *way->last = piece;
        way->last = &piece->next;
        pthread_cond_signal(&way->filled);
        pthread_mutex_unlock(&way->lock);
    } while (size > 0);
    free(buffer);
    return NULL;
}

static struct piece *next_piece(struct direction *way) {
    pthread_mutex_lock(&way->lock);
    while (way->first == NULL) {
        pthread_cond_wait(&way->filled, &way->lock);
    }
    struct piece *piece = way->first;
    way->first = piece->next;
    if (way->first == NULL) {
        way->last = &way->first;
    }
    pthread_mutex_unlock(&way->lock);
    return piece;
}

static void *write_pieces(void *argument) {
    struct direction *way = argument;
    for (;;) {
        struct piece *piece = next_piece(way);
        ssize_t size = piece->size;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &piece->due, NULL) == EINTR) {
        }
        for (ssize_t done = 0; done < size;) {
            ssize_t written = send(way->to, piece->bytes + done, size - done, MSG_NOSIGNAL);
            if (written < 0 && errno != EINTR) {
                break; /* the other direction sees the end of this connection */
            }
            done += written > 0 ? written : 0;
        }
        free(piece);
        if (size == 0) {
            shutdown(way->to, SHUT_WR);
            return NULL;
        }
    }
}

static void start(int from, int to) {
    struct direction *way = calloc(1, sizeof *way);
    pthread_t thread;
    way->from = from;
    way->to = to;
    way->last = &way->first;
    pthread_mutex_init(&way->lock, NULL);
    pthread_cond_init(&way->filled, NULL);
    if (pthread_create(&thread, NULL, read_pieces, way) || pthread_create(&thread, NULL, write_pieces, way)) {
        fail("pthread_create");
    }
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (count != 3 || strlen(arguments[1]) >= sizeof target.sun_path) {
        fprintf(stderr, "usage: delayed_relay SOCKET MILLISECONDS\n");
        return 2;
    }
    strcpy(target.sun_path, arguments[1]);
    delay_ns = (long)(atof(arguments[2]) * 500000);
    if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 128) ||
        getsockname(listening, (struct sockaddr *)&address, &length)) {
        fail("listen");
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int client = accept(listening, NULL, NULL), server = socket(AF_UNIX, SOCK_STREAM, 0);
        if (client < 0 || server < 0) {
            fail("accept");
        }
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(server, (struct sockaddr *)&target, sizeof target)) {
            close(client); /* the database is gone */
            close(server);
            continue;
        }
        start(client, server);
        start(server, client);
    }
}
