/* A relay in front of a Unix socket that delays every byte, as a network does.
 *
 * delayed_relay SOCKET MILLISECONDS listens on a free port of the loopback interface, prints the port, and passes each
 * connection on to the socket. Each direction takes half of the milliseconds. One thread does all the work, so that the
 * relay takes little CPU time from what is measured.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES (256 * 1024)
#define MOST_WAITING_BYTES (4 * 1024 * 1024) /* a direction with so many bytes reads no more until it has sent some */
#define MOST_CONNECTIONS 512
#define RETRY_NS 100000 /* pause after a socket has accepted no bytes */

struct piece {
    long long due_ns;
    size_t size, sent; /* size 0: the end of the stream */
    struct piece *next;
    char bytes[];
};

struct direction {
    int is_ended; /* the sender has closed its side; what waits is still sent */
    size_t waiting_bytes;
    struct piece *first, *last;
};

struct connection {
    int ends[2];                    /* the client's socket and that of the database */
    struct direction directions[2]; /* from each end to the other one */
};

static struct sockaddr_un target = {.sun_family = AF_UNIX};
static struct connection connections[MOST_CONNECTIONS];
static int connection_count;
static long long delay_ns;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void open_connection(int listening) {
    int on = 1, client = accept4(listening, NULL, NULL, SOCK_NONBLOCK), database = socket(AF_UNIX, SOCK_STREAM, 0);
    if (client < 0 || database < 0) {
        fail("accept");
    }
    if (connection_count == MOST_CONNECTIONS || connect(database, (struct sockaddr *)&target, sizeof target)) {
        close(client); /* the database is gone */
        close(database);
        return;
    }
    fcntl(database, F_SETFL, O_NONBLOCK);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections[connection_count++] = (struct connection){.ends = {client, database}};
}

/* Read what an end has sent; it is due after the delay. */
static void receive(struct connection *connection, int end, long long now) {
    static char buffer[CHUNK_BYTES];
    struct direction *way = &connection->directions[end];
    ssize_t size = read(connection->ends[end], buffer, sizeof buffer);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        way->is_ended = 1;
        size = 0;
    }
    struct piece *piece = malloc(sizeof *piece + size);
    *piece = (struct piece){.due_ns = now + delay_ns, .size = size};
    memcpy(piece->bytes, buffer, size);
    if (way->first == NULL) {
        way->first = piece;
    } else {
        way->last->next = piece;
    }
    way->last = piece;
    way->waiting_bytes += size;
}

/* Send what is due. */
static void send_due(struct connection *connection, int end, long long now) {
    struct direction *way = &connection->directions[end];
    int to = connection->ends[1 - end];
    while (way->first != NULL && way->first->due_ns <= now) {
        struct piece *piece = way->first;
        while (piece->sent < piece->size) {
            ssize_t sent = send(to, piece->bytes + piece->sent, piece->size - piece->sent, MSG_NOSIGNAL);
            if (sent < 0 && errno == EAGAIN) {
                piece->due_ns = now + RETRY_NS;
                return;
            }
            if (sent < 0 && errno != EINTR) {
                break; /* the other direction sees the end of this connection */
            }
            piece->sent += sent > 0 ? sent : 0;
        }
        if (piece->size == 0) {
            shutdown(to, SHUT_WR);
        }
        way->first = piece->next;
        way->waiting_bytes -= piece->size;
        free(piece);
    }
}

static void close_ended(void) {
    for (int at = connection_count - 1; at >= 0; at--) {
        struct connection *seen = &connections[at];
        struct direction *there = &seen->directions[0], *back = &seen->directions[1];
        if (there->is_ended && back->is_ended && there->first == NULL && back->first == NULL) {
            close(seen->ends[0]);
            close(seen->ends[1]);
            *seen = connections[--connection_count];
        }
    }
}

static void serve(int listening) {
    static struct pollfd polled[1 + 2 * MOST_CONNECTIONS];
    for (;;) {
        long long now = now_ns(), due_ns = -1;
        int count = connection_count;
        polled[0] = (struct pollfd){.fd = listening, .events = POLLIN};
        for (int at = 0; at < 2 * count; at++) {
            struct connection *seen = &connections[at / 2];
            struct direction *way = &seen->directions[at % 2];
            int reads = !way->is_ended && way->waiting_bytes < MOST_WAITING_BYTES;
            polled[1 + at] = (struct pollfd){.fd = reads ? seen->ends[at % 2] : -1, .events = POLLIN};
            if (way->first != NULL && (due_ns < 0 || way->first->due_ns < due_ns)) {
                due_ns = way->first->due_ns;
            }
        }
        long long wait_ns = due_ns > now ? due_ns - now : 0;
        struct timespec limit = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
        if (ppoll(polled, 1 + 2 * count, due_ns < 0 ? NULL : &limit, NULL) < 0) {
            fail("ppoll");
        }
        now = now_ns();
        for (int at = 0; at < 2 * count; at++) {
            if (polled[1 + at].revents) {
                receive(&connections[at / 2], at % 2, now);
            }
            send_due(&connections[at / 2], at % 2, now);
        }
        if (polled[0].revents) {
            open_connection(listening);
        }
        close_ended();
    }
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (count != 3 || strlen(arguments[1]) >= sizeof target.sun_path) {
        fprintf(stderr, "usage: delayed_relay SOCKET MILLISECONDS\n");
        return 2;
    }
    strcpy(target.sun_path, arguments[1]);
    delay_ns = (long long)(atof(arguments[2]) * 500000);
    prctl(PR_SET_TIMERSLACK, 1UL); /* by default the kernel may wake the relay 50 microseconds late */
    if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 128) ||
        getsockname(listening, (struct sockaddr *)&address, &length)) {
        fail("listen");
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    serve(listening);
}
