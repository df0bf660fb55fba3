// Poco::Net::HTTPServer with one handler for all methods and paths.
#include <Poco/Net/Context.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/SecureServerSocket.h>
#include <Poco/StreamCopier.h>
#include <Poco/ThreadPool.h>
#include <Poco/URI.h>
#include <Poco/Version.h>

#include <chrono>
#include <thread>

#include "application.hpp"

namespace {

namespace net = Poco::Net;

constexpr int THREADS = 512;  // of one worker: a connection keeps its thread

class Handler : public net::HTTPRequestHandler {
  public:
    void handleRequest(net::HTTPServerRequest& from, net::HTTPServerResponse& to) override {
        application::Request request;
        request.method = from.getMethod();
        request.target = from.getURI();
        request.version = from.getVersion();
        application::split(from.getURI(), request);
        request.fields.emplace(from.begin(), from.end());
        if (request.path == "/early") return send({}, to);
        Poco::StreamCopier::copyToString(from.stream(), request.content);
        const auto answer = application::answer(request);
        if (answer.is_slow) {
            std::this_thread::sleep_for(std::chrono::milliseconds(application::SLOW_MS));
        }
        send(answer, to);
    }

  private:
    static void send(const application::Answer& answer, net::HTTPServerResponse& to) {
        to.setStatusAndReason(static_cast<net::HTTPResponse::HTTPStatus>(answer.status));
        for (const auto& [name, value] : answer.fields) to.set(name, value);
        if (answer.status == 204 || answer.status == 304) {
            to.send();
        } else {
            to.sendBuffer(answer.content.data(), answer.content.size());
        }
    }
};

class Factory : public net::HTTPRequestHandlerFactory {
  public:
    net::HTTPRequestHandler* createRequestHandler(const net::HTTPServerRequest&) override {
        return new Handler;
    }
};

void serve(const application::Options& given, net::ServerSocket& socket, Poco::ThreadPool& pool) {
    auto* words = new net::HTTPServerParams;
    words->setMaxThreads(pool.capacity());
    words->setMaxQueued(application::BACKLOG);
    if (given.timeout_s != 0) {
        words->setTimeout(Poco::Timespan(given.timeout_s, 0));
        words->setKeepAliveTimeout(Poco::Timespan(given.timeout_s, 0));
    }
    (new net::HTTPServer(new Factory, pool, socket, words))->start();
}

void bind(const application::Options& given, net::ServerSocket& socket, int port) {
    socket.bind(net::SocketAddress(given.address, static_cast<Poco::UInt16>(port)), true);
    socket.listen(application::BACKLOG);
}

}  // namespace

int main(int argc, char** argv) {
    const int numbers[] = {POCO_VERSION >> 24, POCO_VERSION >> 16 & 255, POCO_VERSION >> 8 & 255};
    const auto version = std::to_string(numbers[0]) + '.' + std::to_string(numbers[1]) + '.' +
                         std::to_string(numbers[2]);
    const auto given = application::options(argc, argv, version);
    application::end_at_sigterm();
    const int threads = THREADS * given.workers;
    Poco::ThreadPool pool(threads, threads);
    net::ServerSocket plain;
    bind(given, plain, given.port);
    serve(given, plain, pool);
    if (given.tls_port != 0) {
        static Poco::ThreadPool secure_pool(threads, threads);
        net::Context::Ptr context = new net::Context(net::Context::TLS_SERVER_USE, given.tls_key,
                                                     given.tls_cert, "", net::Context::VERIFY_NONE);
        net::SecureServerSocket secure(context);
        bind(given, secure, given.tls_port);
        serve(given, secure, secure_pool);
    }
    while (true) pause();
}
