// The null server on the wire, plain and with TLS, and the load generator against it.
#include "null/server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include "load/worker.hpp"
#include "shared/clock.hpp"
#include "tests/shared/scripted_server.hpp"

namespace httpmark {
namespace {

// One worker on a thread.
class RunningNull {
  public:
    explicit RunningNull(const TlsContext* tls = nullptr) {
        const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const Endpoint any = *parse_endpoint("127.0.0.1", 0);
        if (bind(listener, any.sockaddr_ptr(), any.length) != 0 || listen(listener, 128) != 0) {
            std::abort();
        }
        endpoint_ = *bound_endpoint(listener);
        stop_ = eventfd(0, EFD_CLOEXEC);
        thread_ = std::thread([this, listener, tls] { NullWorker(listener, stop_, tls).run(); });
    }
    ~RunningNull() {
        const std::uint64_t one = 1;
        if (write(stop_, &one, sizeof one) != sizeof one) std::abort();
        thread_.join();
        close(stop_);
    }
    const Endpoint& endpoint() const { return endpoint_; }

  private:
    Endpoint endpoint_;
    int stop_ = -1;
    std::thread thread_;
};

int connect_to(const Endpoint& endpoint) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit = {3, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, endpoint.sockaddr_ptr(), endpoint.length) != 0) std::abort();
    return fd;
}

std::string hear(int fd, std::size_t size) {
    std::string heard(size, '\0');
    std::size_t have = 0;
    while (have < size) {
        const ssize_t got = recv(fd, heard.data() + have, size - have, 0);
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    heard.resize(have);
    return heard;
}

const std::string kGet = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(NullServer, each_head_gets_one_good_reply) {
    RunningNull null;
    const int fd = connect_to(null.endpoint());
    std::string many;
    for (int i = 0; i < 3000; ++i) many += kGet;  // more than the replies laid out
    say(fd, many + "GET /half HTTP/1.1\r\n");
    const std::size_t reply = NullReplies::size();
    const std::string heard = hear(fd, 3000 * reply);
    ASSERT_EQ(heard.size(), 3000 * reply);
    ResponseVerifier verifier(200, false);
    verifier.set_wall_clock(std::time(nullptr), std::time(nullptr));
    std::size_t at = 0;
    while (at < heard.size()) {
        const CheckResult result = verifier.check(std::string_view(heard).substr(at));
        ASSERT_EQ(result.kind, CheckKind::kVerified) << at;
        ASSERT_EQ(result.size, reply);
        at += result.size;
    }
    EXPECT_TRUE(verifier.has_date());
    EXPECT_EQ(verifier.body(), "Hello World!");
    say(fd, "Host: a\r\n\r\n");
    EXPECT_EQ(hear(fd, reply).size(), reply);
    // And nothing more.
    char octet = 0;
    EXPECT_EQ(recv(fd, &octet, 1, MSG_DONTWAIT), -1);
    close(fd);
}

TEST(NullServer, whoever_does_not_read_is_not_read_from_and_loses_nothing) {
    RunningNull null;
    const int fd = connect_to(null.endpoint());
    fcntl(fd, F_SETFL, O_NONBLOCK);
    std::string block;
    for (int i = 0; i < 1000; ++i) block += kGet;
    std::size_t sent = 0;
    // Until the server has taken nothing for a tenth of a second.
    for (int idle = 0; idle < 10;) {
        const std::size_t from = sent % block.size();
        const ssize_t part = send(fd, block.data() + from, block.size() - from, MSG_NOSIGNAL);
        if (part > 0) {
            sent += static_cast<std::size_t>(part);
            idle = 0;
            ASSERT_LT(sent, std::size_t{256} << 20) << "the server never stops reading";
        } else {
            usleep(10'000);
            ++idle;
        }
    }
    fcntl(fd, F_SETFL, 0);
    const std::size_t expected = sent / kGet.size() * NullReplies::size();
    shutdown(fd, SHUT_WR);
    const std::string heard = hear(fd, expected + 1);
    EXPECT_EQ(heard.size(), expected);
    EXPECT_EQ(heard.substr(heard.size() - 12), "Hello World!");
    close(fd);
}

// A key and a certificate for 127.0.0.1, in files for as long as it lives.
class Certificate {
  public:
    Certificate() {
        EVP_PKEY* key = EVP_EC_gen("P-256");
        X509* certificate = X509_new();
        X509_set_version(certificate, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
        X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
        X509_NAME* name = X509_get_subject_name(certificate);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>("null"), -1, -1, 0);
        X509_set_issuer_name(certificate, name);
        X509_EXTENSION* alternative =
            X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
        X509_add_ext(certificate, alternative, -1);
        X509_set_pubkey(certificate, key);
        X509_sign(certificate, key, EVP_sha256());
        FILE* file = std::fopen(certificate_path().c_str(), "w");
        PEM_write_X509(file, certificate);
        std::fclose(file);
        file = std::fopen(key_path().c_str(), "w");
        PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
        std::fclose(file);
        X509_EXTENSION_free(alternative);
        X509_free(certificate);
        EVP_PKEY_free(key);
    }
    ~Certificate() {
        unlink(certificate_path().c_str());
        unlink(key_path().c_str());
        rmdir(folder_.c_str());
    }
    std::string certificate_path() const { return folder_ + "/certificate.pem"; }
    std::string key_path() const { return folder_ + "/key.pem"; }

  private:
    static std::string make_folder() {
        std::string name = testing::TempDir() + "httpmark_null_XXXXXX";
        if (mkdtemp(name.data()) == nullptr) std::abort();
        return name;
    }
    std::string folder_ = make_folder();
};

LoadCounts load(const RunningNull& null, const TlsContext* tls, Refill refill) {
    LoadPlan plan;
    plan.server = null.endpoint();
    plan.tls = tls;
    plan.connections = 4;
    plan.depth = 300;  // replies of more than two TLS records
    plan.refill = refill;
    plan.duration_s = 0.2;
    plan.requests.push_back({kGet, false});
    ResponseVerifier verifier(200, false);
    LoadWorker worker(plan, plan.connections, {verifier});
    worker.connect_all();
    worker.run(monotonic_ns());
    return worker.result().counts;
}

TEST(NullServer, the_generator_finds_nothing_wrong) {
    RunningNull null;
    for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
        const LoadCounts counts = load(null, nullptr, refill);
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.responses, 1000u);
        EXPECT_EQ(counts.responses, counts.requests_sent);
    }
}

TEST(Tls, both_versions_verified_end_to_end) {
    signal(SIGPIPE, SIG_IGN);
    const Certificate certificate;
    std::string complaint;
    const auto server =
        TlsContext::server(certificate.certificate_path(), certificate.key_path(), &complaint);
    ASSERT_TRUE(server) << complaint;
    RunningNull null(&*server);
    const struct {
        const char* version;
        const char* cipher;
        const char* name;
    } pins[] = {{"1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2"},
                {"1.3", "TLS_AES_128_GCM_SHA256", "TLSv1.3"}};
    for (const auto& pin : pins) {
        const auto client = TlsContext::client(
            {pin.version, pin.cipher, certificate.certificate_path(), "127.0.0.1"}, &complaint);
        ASSERT_TRUE(client) << complaint;
        const int fd = connect_to(null.endpoint());
        TlsStream stream;
        ASSERT_TRUE(stream.connect(*client, fd, &complaint)) << complaint;
        EXPECT_EQ(stream.version(), pin.name);
        EXPECT_EQ(stream.cipher(), pin.cipher);
        stream.reset();
        close(fd);
        for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
            const LoadCounts counts = load(null, &*client, refill);
            EXPECT_EQ(counts.errors.sum(), 0u);
            EXPECT_GT(counts.responses, 1000u);
            EXPECT_EQ(counts.responses, counts.requests_sent);
            EXPECT_EQ(counts.handshake.total(), 4u);
        }
    }
}

TEST(Tls, a_certificate_of_somebody_else_is_refused) {
    signal(SIGPIPE, SIG_IGN);
    const Certificate certificate;
    const Certificate other;
    std::string complaint;
    const auto server =
        TlsContext::server(certificate.certificate_path(), certificate.key_path(), &complaint);
    ASSERT_TRUE(server) << complaint;
    RunningNull null(&*server);
    const TlsClientOptions wrong[] = {{"", "", other.certificate_path(), "127.0.0.1"},
                                      {"", "", certificate.certificate_path(), "127.0.0.2"},
                                      {"", "", certificate.certificate_path(), "localhost"}};
    for (const TlsClientOptions& options : wrong) {
        const auto client = TlsContext::client(options, &complaint);
        ASSERT_TRUE(client) << complaint;
        const int fd = connect_to(null.endpoint());
        TlsStream stream;
        EXPECT_FALSE(stream.connect(*client, fd, &complaint));
        EXPECT_NE(complaint.find("verify failed"), std::string::npos) << complaint;
        close(fd);
        LoadPlan plan;
        plan.server = null.endpoint();
        plan.tls = &*client;
        plan.requests.push_back({kGet, false});
        LoadWorker worker(plan, 1, {ResponseVerifier(200, false)});
        worker.connect_all();
        EXPECT_EQ(worker.result().counts.errors.connect, 1u);
    }
}

TEST(Tls, handshakes_of_all_connections_are_under_way_at_once) {
    signal(SIGPIPE, SIG_IGN);
    const Certificate certificate;
    std::string complaint;
    const auto context =
        TlsContext::server(certificate.certificate_path(), certificate.key_path(), &complaint);
    ASSERT_TRUE(context) << complaint;
    std::atomic<int> under_way = 0;
    std::atomic<int> most = 0;
    ScriptedServer server([&](int fd) {
        const int now = ++under_way;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        usleep(20'000);  // as slow as a key of many bits
        --under_way;
        TlsStream stream;
        if (!stream.accept(*context, fd)) return;
        std::string heard;
        char octet = 0;
        while (heard.find("\r\n\r\n") == std::string::npos && stream.receive(&octet, 1) == 1) {
            heard += octet;
        }
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        stream.send(answer.data(), answer.size());
        stream.receive(&octet, 1);
    });
    const auto client =
        TlsContext::client({"", "", certificate.certificate_path(), "127.0.0.1"}, &complaint);
    ASSERT_TRUE(client) << complaint;
    LoadPlan plan;
    plan.server = server.endpoint();
    plan.tls = &*client;
    plan.mode = LoadMode::kChurn;
    plan.connections = 8;
    plan.duration_s = 1;
    plan.requests.push_back({kGet, false});
    LoadWorker worker(plan, plan.connections, {ResponseVerifier(200, false)});
    worker.connect_all();
    EXPECT_EQ(worker.result().established, 8u);
    worker.run(monotonic_ns());
    const LoadCounts& counts = worker.result().counts;
    EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
    EXPECT_GE(most, 6);
    // One after the other there would be 50.
    EXPECT_GT(counts.handshake.total(), 80u);
    EXPECT_GT(counts.handshake.percentile(50), 20'000'000u);
}

TEST(Tls, options_openssl_will_not_have) {
    std::string complaint;
    EXPECT_FALSE(TlsContext::client({"", "NO-SUCH-CIPHER", "", ""}, &complaint));
    EXPECT_FALSE(TlsContext::client({"1.3", "ECDHE-ECDSA-AES128-GCM-SHA256", "", ""}, &complaint));
    EXPECT_FALSE(TlsContext::client({"", "", "/nonexistent/file", ""}, &complaint));
    EXPECT_FALSE(TlsContext::server("/nonexistent/file", "/nonexistent/file", &complaint));
    EXPECT_FALSE(complaint.empty());
}

}  // namespace
}  // namespace httpmark
