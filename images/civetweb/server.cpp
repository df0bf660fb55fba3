// CivetWeb with one handler for all methods and paths.
#include <civetweb.h>

#include <chrono>
#include <thread>

#include "application.hpp"

namespace {

constexpr int THREADS = 512;  // of one worker: a connection keeps its thread

application::Request understood(const mg_request_info& from) {
    application::Request request;
    request.method = from.request_method;
    request.path = from.request_uri;
    if (from.query_string != nullptr) request.query = from.query_string;
    request.version = std::string("HTTP/") + from.http_version;
    request.fields.emplace();
    for (int i = 0; i < from.num_headers; ++i) {
        request.fields->emplace_back(from.http_headers[i].name, from.http_headers[i].value);
    }
    return request;
}

void send(mg_connection* to, const std::string& method, const application::Answer& answer) {
    mg_response_header_start(to, answer.status);
    for (const auto& [name, value] : answer.fields) {
        mg_response_header_add(to, name.c_str(), value.c_str(), -1);
    }
    if (answer.status != 204 && answer.status != 304) {
        const auto length = std::to_string(answer.content.size());
        mg_response_header_add(to, "Content-Length", length.c_str(), -1);
    }
    mg_response_header_send(to);
    if (method != "HEAD") mg_write(to, answer.content.data(), answer.content.size());
}

// 1: the request is handled, and CivetWeb looks for no file.
int handle(mg_connection* connection, void*) {
    auto request = understood(*mg_get_request_info(connection));
    const bool is_early = request.path == "/early";
    if (is_early) send(connection, request.method, {});
    char piece[65536];
    for (int size; (size = mg_read(connection, piece, sizeof piece)) > 0;) {
        request.content.append(piece, static_cast<std::size_t>(size));
    }
    if (is_early) return 1;
    const auto answer = application::answer(request);
    if (answer.is_slow) {
        std::this_thread::sleep_for(std::chrono::milliseconds(application::SLOW_MS));
    }
    send(connection, request.method, answer);
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    const auto given = application::options(argc, argv, mg_version());
    application::end_at_sigterm();
    const bool is_six = given.address.find(':') != std::string::npos;
    const auto port =
        (is_six ? '[' + given.address + ']' : given.address) + ':' + std::to_string(given.port);
    const auto threads = std::to_string(THREADS * given.workers);
    const auto backlog = std::to_string(application::BACKLOG);
    std::vector<std::string> words = {"listening_ports",   port,   "num_threads",    threads,
                                      "enable_keep_alive", "yes",  "listen_backlog", backlog,
                                      "connection_queue",  backlog};
    if (given.timeout_s != 0) {
        const auto limit = std::to_string(given.timeout_s * 1000);
        words.insert(words.end(), {"request_timeout_ms", limit, "keep_alive_timeout_ms", limit});
    }
    std::vector<const char*> list;
    for (const auto& word : words) list.push_back(word.c_str());
    list.push_back(nullptr);
    mg_init_library(MG_FEATURES_DEFAULT);
    auto* server = mg_start(nullptr, nullptr, list.data());
    if (server == nullptr) application::fail("cannot listen on " + port);
    mg_set_request_handler(server, "**", handle, nullptr);
    while (true) pause();
}
