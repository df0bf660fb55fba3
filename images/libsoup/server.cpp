// The server of libsoup 3 with one handler for all methods and paths.
#include <libsoup/soup.h>

#include "application.hpp"

namespace {

application::Request understood(SoupServerMessage* from, const char* path) {
    GUri* uri = soup_server_message_get_uri(from);
    application::Request request;
    request.method = soup_server_message_get_method(from);
    request.path = path;
    request.target = g_uri_get_path(uri);
    if (const char* query = g_uri_get_query(uri)) {
        request.query = query;
        *request.target += '?' + request.query;
    }
    const bool is_1_1 = soup_server_message_get_http_version(from) == SOUP_HTTP_1_1;
    request.version = is_1_1 ? "HTTP/1.1" : "HTTP/1.0";
    GBytes* content = soup_message_body_flatten(soup_server_message_get_request_body(from));
    std::size_t size = 0;
    const auto* data = static_cast<const char*>(g_bytes_get_data(content, &size));
    if (size > 0) request.content.assign(data, size);
    g_bytes_unref(content);
    request.fields.emplace();
    soup_message_headers_foreach(
        soup_server_message_get_request_headers(from),
        [](const char* name, const char* value, void* fields) {
            static_cast<application::Fields*>(fields)->emplace_back(name, value);
        },
        &*request.fields);
    return request;
}

void handle(SoupServer*, SoupServerMessage* message, const char* path, GHashTable*, void*) {
    const auto answer = application::answer(understood(message, path));
    soup_server_message_set_status(message, static_cast<guint>(answer.status), nullptr);
    auto* fields = soup_server_message_get_response_headers(message);
    for (const auto& [name, value] : answer.fields) {
        soup_message_headers_append(fields, name.c_str(), value.c_str());
    }
    soup_message_body_append(soup_server_message_get_response_body(message), SOUP_MEMORY_COPY,
                             answer.content.data(), answer.content.size());
    if (!answer.is_slow) return;
    soup_server_message_pause(message);
    g_timeout_add(
        application::SLOW_MS,
        [](void* waiting) {
            soup_server_message_unpause(static_cast<SoupServerMessage*>(waiting));
            g_object_unref(waiting);
            return G_SOURCE_REMOVE;
        },
        g_object_ref(message));
}

void must(GError* error) {
    if (error != nullptr) application::fail(error->message);
}

void listen(SoupServer* server, int fd, SoupServerListenOptions options) {
    GError* error = nullptr;
    GSocket* socket = g_socket_new_from_fd(fd, &error);
    must(error);
    soup_server_listen_socket(server, socket, options, &error);
    must(error);
}

}  // namespace

int main(int argc, char** argv) {
    const auto version = std::to_string(soup_get_major_version()) + '.' +
                         std::to_string(soup_get_minor_version()) + '.' +
                         std::to_string(soup_get_micro_version());
    const auto given = application::options(argc, argv, version);
    application::fork_workers(given.workers);
    SoupServer* server = soup_server_new(nullptr, nullptr);
    soup_server_add_handler(server, nullptr, handle, nullptr, nullptr);
    listen(server, application::listener(given.address, given.port), SoupServerListenOptions{});
    if (given.tls_port != 0) {
        GError* error = nullptr;
        GTlsCertificate* certificate = g_tls_certificate_new_from_files(
            given.tls_cert.c_str(), given.tls_key.c_str(), &error);
        must(error);
        soup_server_set_tls_certificate(server, certificate);
        listen(server, application::listener(given.address, given.tls_port),
               SOUP_SERVER_LISTEN_HTTPS);
    }
    g_main_loop_run(g_main_loop_new(nullptr, FALSE));
}
