// GNU libmicrohttpd with one handler for all methods and paths.
#include <microhttpd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "application.hpp"

namespace {

// A request, from its line to the end of its answer.
struct Call {
    application::Request request;
    bool is_begun = false;
    bool is_answered = false;
    bool has_waited = false;
};

void* begin(void*, const char* target, MHD_Connection*) {
    auto call = std::make_unique<Call>();
    call->request.target = target;
    application::split(target, call->request);
    return call.release();
}

void end(void*, MHD_Connection*, void** call, MHD_RequestTerminationCode) {
    delete static_cast<Call*>(*call);
}

MHD_Result add(void* to, MHD_ValueKind, const char* name, std::size_t name_size, const char* value,
               std::size_t size) {
    static_cast<application::Fields*>(to)->emplace_back(
        std::string(name, name_size), value == nullptr ? "" : std::string(value, size));
    return MHD_YES;
}

application::Fields values(MHD_Connection* connection, MHD_ValueKind kind) {
    application::Fields fields;
    MHD_get_connection_values_n(connection, kind, add, &fields);
    return fields;
}

MHD_Result queue(MHD_Connection* connection, Call& call, const application::Answer& answer) {
    call.is_answered = true;
    const auto& content = answer.content;
    auto* response = MHD_create_response_from_buffer(
        content.size(), const_cast<char*>(content.data()), MHD_RESPMEM_MUST_COPY);
    for (const auto& [name, value] : answer.fields) {
        MHD_add_response_header(response, name.c_str(), value.c_str());
    }
    const auto result =
        MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return result;
}

MHD_Result handle(void*, MHD_Connection* connection, const char* path, const char* method,
                  const char* version, const char* data, std::size_t* size, void** context) {
    auto& call = *static_cast<Call*>(*context);
    auto& request = call.request;
    if (!call.is_begun) {  // the head is there
        call.is_begun = true;
        request.path = path;
        request.method = method;
        request.version = version;
        return request.path == "/early" ? queue(connection, call, {}) : MHD_YES;
    }
    if (*size > 0) {
        request.content.append(data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (call.is_answered) return MHD_YES;
    request.fields = values(connection, MHD_HEADER_KIND);
    request.trailers = values(connection, MHD_FOOTER_KIND);
    const auto answer = application::answer(request);
    if (answer.is_slow && !call.has_waited) {
        call.has_waited = true;  // it is called again when the connection goes on
        MHD_suspend_connection(connection);
        std::thread([connection] {
            std::this_thread::sleep_for(std::chrono::milliseconds(application::SLOW_MS));
            MHD_resume_connection(connection);
        }).detach();
        return MHD_YES;
    }
    return queue(connection, call, answer);
}

void serve(const application::Options& given, int port, unsigned flags,
           std::vector<MHD_OptionItem> more) {
    const auto workers = static_cast<unsigned>(given.workers);
    more.push_back({MHD_OPTION_END, 0, nullptr});
    auto* daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | flags, 0,
        nullptr, nullptr, handle, nullptr, MHD_OPTION_LISTEN_SOCKET,
        application::listener(given.address, port), MHD_OPTION_THREAD_POOL_SIZE,
        workers > 1 ? workers : 0U, MHD_OPTION_CONNECTION_LIMIT, 32768U,
        MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(given.timeout_s),
        MHD_OPTION_URI_LOG_CALLBACK, begin, nullptr, MHD_OPTION_NOTIFY_COMPLETED, end, nullptr,
        MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
    if (daemon == nullptr) application::fail("libmicrohttpd does not start");
}

}  // namespace

int main(int argc, char** argv) {
    const auto given = application::options(argc, argv, MHD_get_version());
    application::end_at_sigterm();
    serve(given, given.port, 0, {});
    std::string key;
    std::string cert;
    if (given.tls_port != 0) {
        key = application::file(given.tls_key);
        cert = application::file(given.tls_cert);
        serve(given, given.tls_port, MHD_USE_TLS,
              {{MHD_OPTION_HTTPS_MEM_KEY, 0, key.data()},
               {MHD_OPTION_HTTPS_MEM_CERT, 0, cert.data()}});
    }
    pause();
}
