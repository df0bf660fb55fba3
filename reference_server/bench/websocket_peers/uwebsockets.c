// Sends every message back at any path: uWebSockets, by the C interface of the library that the
// Python package `socketify` brings along. No Python runs in it.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct context_options {
    const char *key, *certificate, *passphrase, *dh_params, *ca, *ciphers;
    int low_memory;
};
struct listen_config {
    int port;
    const char *host;
    int options;
};
struct behavior {
    int compression;
    unsigned payload_max;
    unsigned short idle_timeout;
    unsigned backpressure_max;
    bool close_on_backpressure, reset_idle_on_send, send_pings;
    unsigned short lifetime_max;
    void (*upgrade)(void), (*open)(void);
    void (*message)(void *socket, const char *message, size_t size, int opcode, void *data);
    void (*drain)(void), (*ping)(void), (*pong)(void), (*close)(void), (*subscription)(void);
};
void *uws_create_app(int tls, struct context_options options);
void uws_ws(int tls, void *app, const char *pattern, struct behavior behavior, void *data);
int uws_ws_send(int tls, void *socket, const char *message, size_t size, int opcode);
void uws_app_listen_with_config(int tls, void *app, struct listen_config config,
                                void (*listening)(void *, struct listen_config, void *),
                                void *data);
void uws_app_run(int tls, void *app);

static void send_back(void *socket, const char *message, size_t size, int opcode, void *data) {
    (void)data;
    uws_ws_send(0, socket, message, size, opcode);
}

static void listening(void *socket, struct listen_config config, void *data) {
    (void)config;
    (void)data;
    if (socket == NULL) exit(1);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    void *const app = uws_create_app(0, (struct context_options){0});
    uws_ws(0, app, "/*",
           (struct behavior){.payload_max = 8388608,
                             .idle_timeout = 120,
                             .backpressure_max = 1 << 24,
                             .send_pings = true,
                             .message = send_back},
           NULL);
    uws_app_listen_with_config(0, app, (struct listen_config){atoi(argv[1]), "127.0.0.1", 0},
                               listening, NULL);
    uws_app_run(0, app);
    return 0;
}
