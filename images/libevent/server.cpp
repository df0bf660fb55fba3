// evhttp of libevent with one handler for all methods and paths.
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <openssl/ssl.h>

#include <memory>
#include <thread>

#include "application.hpp"

namespace {

constexpr int METHODS = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                        EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                        EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;

const char* method(const evhttp_request* request) {
    switch (evhttp_request_get_command(request)) {
        case EVHTTP_REQ_GET:
            return "GET";
        case EVHTTP_REQ_POST:
            return "POST";
        case EVHTTP_REQ_HEAD:
            return "HEAD";
        case EVHTTP_REQ_PUT:
            return "PUT";
        case EVHTTP_REQ_DELETE:
            return "DELETE";
        case EVHTTP_REQ_OPTIONS:
            return "OPTIONS";
        case EVHTTP_REQ_TRACE:
            return "TRACE";
        case EVHTTP_REQ_CONNECT:
            return "CONNECT";
        default:
            return "PATCH";
    }
}

application::Request understood(evhttp_request* from) {
    application::Request request;
    request.method = method(from);
    request.target = evhttp_request_get_uri(from);
    application::split(*request.target, request);
    request.version = "HTTP/" + std::to_string(from->major) + '.' + std::to_string(from->minor);
    request.fields.emplace();  // those of the trailer section are among them
    for (const auto* one = evhttp_request_get_input_headers(from)->tqh_first; one != nullptr;
         one = one->next.tqe_next) {
        request.fields->emplace_back(one->key, one->value);
    }
    auto* content = evhttp_request_get_input_buffer(from);
    request.content.resize(evbuffer_get_length(content));
    evbuffer_remove(content, request.content.data(), request.content.size());
    return request;
}

void send(evhttp_request* to, const application::Answer& answer) {
    for (const auto& [name, value] : answer.fields) {
        evhttp_add_header(evhttp_request_get_output_headers(to), name.c_str(), value.c_str());
    }
    auto* content = evbuffer_new();
    evbuffer_add(content, answer.content.data(), answer.content.size());
    evhttp_send_reply(to, answer.status, nullptr, content);
    evbuffer_free(content);
}

void handle(evhttp_request* from, void* base) {
    const auto answer = application::answer(understood(from));
    if (!answer.is_slow) return send(from, answer);
    const timeval wait = {0, application::SLOW_MS * 1000};
    event_base_once(
        static_cast<event_base*>(base), -1, EV_TIMEOUT,
        [](int, short, void* to) { send(static_cast<evhttp_request*>(to), {}); }, from, &wait);
}

bufferevent* secured(event_base* base, void* context) {
    return bufferevent_openssl_socket_new(base, -1, SSL_new(static_cast<SSL_CTX*>(context)),
                                          BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

void serve(event_base* base, const application::Options& given, int fd, SSL_CTX* context) {
    auto* server = evhttp_new(base);
    evhttp_set_allowed_methods(server, METHODS);
    evhttp_set_gencb(server, handle, base);
    if (given.timeout_s != 0) evhttp_set_timeout(server, given.timeout_s);
    if (context != nullptr) evhttp_set_bevcb(server, secured, context);
    if (evhttp_accept_socket(server, fd) != 0) application::fail("evhttp cannot listen");
}

SSL_CTX* context_of(const application::Options& given) {
    auto* context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, given.tls_cert.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, given.tls_key.c_str(), SSL_FILETYPE_PEM) != 1) {
        application::fail("cannot use the certificate and its key");
    }
    return context;
}

}  // namespace

int main(int argc, char** argv) {
    const auto given = application::options(argc, argv, event_get_version());
    application::end_at_sigterm();
    auto* context = given.tls_port != 0 ? context_of(given) : nullptr;
    std::vector<std::thread> threads;
    for (int i = 0; i < given.workers; ++i) {
        auto* base = event_base_new();
        serve(base, given, application::listener(given.address, given.port), nullptr);
        if (context != nullptr) {
            serve(base, given, application::listener(given.address, given.tls_port), context);
        }
        threads.emplace_back([base] { event_base_dispatch(base); });
    }
    for (auto& one : threads) one.join();
}
