// TLS over memory: a client of the same library on one side, Connections on the other.
#include "net/tls.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "app/static_files.hpp"
#include "app/waker.hpp"
#include "files/tree.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using Statuses = std::vector<int>;
const std::string kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

// A key and a certificate signed by itself, in files that go when the test ends.
class Certificate {
  public:
    explicit Certificate(const char* name) {
        EVP_PKEY* const key = EVP_EC_gen("P-256");
        CHECK(key != nullptr);
        X509* const certificate = X509_new();
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
        X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
        X509_set_version(certificate, 2);
        X509_set_pubkey(certificate, key);
        X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
        X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
        const std::string alternative = std::string("DNS:") + name;
        X509_EXTENSION* const extension =
            X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str());
        X509_add_ext(certificate, extension, -1);
        X509_EXTENSION_free(extension);
        CHECK(X509_sign(certificate, key, EVP_sha256()) != 0);
        certificate_file = write([&](std::FILE* file) { PEM_write_X509(file, certificate); });
        key_file = write([&](std::FILE* file) {
            PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
        });
        X509_free(certificate);
        EVP_PKEY_free(key);
    }
    ~Certificate() {
        unlink(certificate_file.c_str());
        unlink(key_file.c_str());
    }
    std::string certificate_file;
    std::string key_file;

  private:
    template <class Fill>
    static std::string write(const Fill& fill) {
        std::string path = testing::TempDir() + "httpmark-tls-XXXXXX";
        const int fd = mkstemp(path.data());
        CHECK(fd >= 0);
        std::FILE* const file = fdopen(fd, "w");
        fill(file);
        std::fclose(file);
        return path;
    }
};

struct ClientOptions {
    int version = 0;
    const char* name = nullptr;
    std::string alpn;  // in wire form
};

class Client {
  public:
    Client(Wire& wire, const ClientOptions& options) : wire_(wire), id_(wire.connect(true)) {
        context_ = SSL_CTX_new(TLS_client_method());
        if (options.version != 0) {
            SSL_CTX_set_min_proto_version(context_, options.version);
            SSL_CTX_set_max_proto_version(context_, options.version);
        }
        ssl_ = SSL_new(context_);
        if (options.name != nullptr) SSL_set_tlsext_host_name(ssl_, options.name);
        if (!options.alpn.empty()) {
            SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options.alpn.data()),
                                static_cast<unsigned>(options.alpn.size()));
        }
        in_ = BIO_new(BIO_s_mem());
        out_ = BIO_new(BIO_s_mem());
        SSL_set_bio(ssl_, in_, out_);
        SSL_set_connect_state(ssl_);
    }
    ~Client() {
        SSL_free(ssl_);
        SSL_CTX_free(context_);
    }
    bool handshake() {
        for (unsigned i = 0; i < 10; ++i) {
            ERR_clear_error();
            const int done = SSL_do_handshake(ssl_);
            const int fault = SSL_get_error(ssl_, done);
            move();
            if (done == 1) return true;
            if (fault != SSL_ERROR_WANT_READ) return false;
        }
        return false;
    }
    void write(std::string_view octets) {
        CHECK(SSL_write(ssl_, octets.data(), static_cast<int>(octets.size())) ==
              static_cast<int>(octets.size()));
        move();
    }
    std::string read() {
        move();
        std::string out;
        char buffer[20000];
        int got = 0;
        while (ERR_clear_error(), (got = SSL_read(ssl_, buffer, sizeof buffer)) > 0) {
            out.append(buffer, static_cast<std::size_t>(got));
        }
        ended = SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN;
        return out;
    }
    // Bytes both ways; the client's in pieces of `step`.
    void move() {
        char buffer[4096];
        int got = 0;
        while ((got = BIO_read(out_, buffer, sizeof buffer)) > 0) {
            for (int at = 0; at < got; at += step) {
                wire_.feed(id_, {buffer + at, static_cast<std::size_t>(std::min(step, got - at))});
            }
        }
        const std::string& sent = wire_.sent(id_);
        if (taken_ < sent.size()) {
            BIO_write(in_, sent.data() + taken_, static_cast<int>(sent.size() - taken_));
            taken_ = sent.size();
        }
    }
    SSL* ssl() { return ssl_; }
    std::uint32_t id() const { return id_; }
    int step = 4096;
    bool ended = false;

  private:
    Wire& wire_;
    std::uint32_t id_;
    SSL_CTX* context_;
    SSL* ssl_;
    BIO* in_;
    BIO* out_;
    std::size_t taken_ = 0;
};

TlsSettings settings_for(const std::vector<const Certificate*>& certificates) {
    TlsSettings settings;
    for (const Certificate* c : certificates)
        settings.pairs.push_back({c->certificate_file, c->key_file});
    return settings;
}

std::shared_ptr<const TlsContext> load(const TlsSettings& settings) {
    std::string error;
    auto context = TlsContext::load(settings, error);
    LAW(context != nullptr, << error);
    return context;
}

TEST(Tls, both_versions_in_pieces_of_any_size) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        for (const int step : {1, 7, 100, 4096}) {
            Client client(wire, {version, nullptr, {}});
            client.step = step;
            LAW(client.handshake());
            LAW(SSL_version(client.ssl()) == version);
            std::string batch;
            for (unsigned i = 0; i < 300; ++i) batch += kGet;
            client.write(batch);
            LAW(statuses(client.read()) == Statuses(300, 200));
            const std::string content(100000, 'z');
            client.write("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" +
                         content);
            LAW(client.read().ends_with("\r\n\r\n" + content));
            client.write("GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            LAW(statuses(client.read()) == Statuses{200});
            LAW(client.ended, << "no close_notify");
            LAW(wire.shut(client.id()));
        }
    }
}

TEST(Tls, who_makes_room_is_told_of_the_end) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {TLS1_3_VERSION, nullptr, {}});
    LAW(client.handshake());
    wire.connect();  // a later event is about another one
    client.write(kGet);
    LAW(statuses(client.read()) == Statuses{200} && !client.ended);
    wire.pass(1000);
    const std::uint32_t other = wire.connect();
    wire.feed(other, kGet);
    while (wire.alive(client.id())) LAW(wire.connections().close_an_idle_one());
    LAW(client.read().empty() && client.ended, << "no close_notify");
}

// What the system could send in the clear has to be read and encrypted.
TEST(Tls, files_are_never_sent_in_the_clear) {
    std::string text;
    for (unsigned i = 0; i < 200000; ++i) text += static_cast<char>('a' + i % 23);
    Tree tree;
    tree.file("file", text);
    std::string error;
    const auto files = StaticFiles::open(tree.at(".").c_str(), {}, error);
    CHECK(files != nullptr);
    Router::Builder routes;
    StaticFiles::add(routes, "", files);
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    const std::size_t before = open_descriptors();
    const Certificate certificate("a.example");
    Wire wire(settings);
    wire.send_files();
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {});
    LAW(client.handshake());
    const std::string ask = "GET /file HTTP/1.1\r\nHost: h\r\n";
    client.write(ask + "\r\n" + ask + "Range: bytes=100-\r\nConnection: close\r\n\r\n");
    const std::string got = client.read();
    LAW(statuses(got) == (Statuses{200, 206}) && client.ended);
    LAW(got.find("\r\n\r\n" + text + "HTTP/1.1 206 ") != std::string::npos);
    LAW(got.ends_with("\r\n\r\n" + text.substr(100)));
    LAW(wire.file_sends() == 0 && open_descriptors() == before);
}

// Whether these are records and nothing else (RFC 8446 5.1); a close may have cut the last one.
bool are_records(std::string_view sent) {
    while (sent.size() >= 5) {
        const unsigned type = static_cast<unsigned char>(sent[0]);
        const std::size_t size =
            static_cast<unsigned char>(sent[3]) * 256U + static_cast<unsigned char>(sent[4]);
        if (type < 20 || type > 23 || sent[1] != 3 || size > kTlsRecordMax + 256) return false;
        sent.remove_prefix(std::min(5 + size, sent.size()));
    }
    return sent.empty();
}

// Part of an answer waits for its turn, or frames for the end of it, when the client's next bytes
// are no record: what was not encrypted before is not sent at all.
TEST(Tls, what_waits_when_a_session_fails_is_not_sent_in_the_clear) {
    const std::string half(kSentInTurnMax / 2 + 50000, 'h');
    WebSocket* other = nullptr;
    Router::Builder routes;
    routes.add(kAnyMethod, "/whole", [&](const Request&, ResponseWriter& writer) {
        return writer.answer(200, {}, half + half);
    });
    routes.add(kAnyMethod, "/later",
               [&, whole = half + half](const Request&, ResponseWriter& writer) {
                   return writer.write_reference(200, {}, whole) ? Reason::kNone : writer.fault();
               });
    WebSocketRoute route;
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) { other = &socket; };
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    routes.add_websocket("/ws", route);
    routes.add(kAnyMethod, "/say", [&](const Request&, ResponseWriter& writer) {
        LAW(other->send_text("a message in the clear") == WebSocket::Sent::kYes);
        return writer.answer(204, {}, {});
    });
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    const Certificate certificate("a.example");
    for (const std::string target : {"/whole", "/later", "/ws"}) {
        Wire wire(settings);
        wire.connections().set_tls(load(settings_for({&certificate})));
        Client client(wire, {});
        LAW(client.handshake());
        client.step = 1 << 20;
        client.write("GET " + target +
                     " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
        if (target == "/ws") {
            const std::string say = "GET /say HTTP/1.1\r\nHost: h\r\n\r\n";
            wire.connections().on_data(wire.connect(), say.data(), say.size());
        } else {
            LAW(wire.wants_room(client.id()), << "more than one turn sends");
        }
        wire.feed(client.id(), "no record at all");
        for (unsigned i = 0; i < 10 && wire.alive(client.id()); ++i) {
            wire.give_room(client.id(), 1U << 30);
        }
        LAW(are_records(wire.sent(client.id())), << target);
        LAW(wire.shut(client.id()));
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

// RFC 9112 9.6: what comes after the last answer is thrown away, up to a bound, encrypted or not.
TEST(Tls, what_comes_while_a_close_lingers_is_thrown_away_and_bounded) {
    const Certificate certificate("a.example");
    ServerSettings settings;
    settings.limits.linger_max = 10000;
    Wire wire(settings);
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {});
    LAW(client.handshake());
    client.write("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    LAW(statuses(client.read()) == Statuses{200} && client.ended && wire.shut(client.id()));
    const std::uint64_t requests = wire.connections().counters().requests;
    const std::size_t sent = wire.sent(client.id()).size();
    client.write(kGet);
    wire.feed(client.id(), std::string(9000, 'x'));
    LAW(wire.alive(client.id()));
    wire.feed(client.id(), std::string(1000, 'x'));
    LAW(!wire.alive(client.id()) && wire.sent(client.id()).size() == sent);
    LAW(wire.connections().counters().requests == requests);
}

TEST(Tls, replies_of_a_batch_share_records) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {});
    LAW(client.handshake());
    client.read();
    std::string batch;
    for (unsigned i = 0; i < 256; ++i) batch += kGet;
    client.step = 1 << 20;
    const std::size_t before = wire.sent(client.id()).size();
    client.write(batch);
    const std::size_t size = wire.sent(client.id()).size() - before;
    LAW(size > 256 * 114 && size < 256 * 114 + 200, << size);  // two or three records, not 256
}

TEST(Tls, protocols_and_names) {
    const Certificate first("a.example");
    const Certificate second("b.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&first, &second})));
    const auto name_of = [](Client& client) {
        X509* const certificate = SSL_get1_peer_certificate(client.ssl());
        const bool is_b = X509_check_host(certificate, "b.example", 0, 0, nullptr) == 1;
        X509_free(certificate);
        return is_b ? "b" : "a";
    };
    Client plain(wire, {});
    LAW(plain.handshake() && std::string(name_of(plain)) == "a");
    Client named(wire, {0, "b.example", "\x02h2\x08http/1.1"});
    LAW(named.handshake() && std::string(name_of(named)) == "b");
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(named.ssl(), &protocol, &size);
    LAW(std::string_view(reinterpret_cast<const char*>(protocol), size) == "http/1.1");
    Client unknown(wire, {0, "c.example", {}});
    LAW(unknown.handshake() && std::string(name_of(unknown)) == "a");
    Client other(wire, {0, nullptr, "\x02h2"});
    LAW(!other.handshake());
    LAW(wire.shut(other.id()) || !wire.alive(other.id()));
}

TEST(Tls, plain_octets_and_silence_are_not_served) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    const std::uint32_t plain = wire.connect(true);
    wire.feed(plain, kGet);
    LAW(wire.sent(plain).find("200") == std::string::npos);
    LAW(wire.shut(plain) || !wire.alive(plain));
    const std::uint32_t silent = wire.connect(true);
    wire.pass(9999);
    LAW(wire.alive(silent));
    wire.pass(1 + 2 * kTickMs);
    LAW(!wire.alive(silent) || wire.shut(silent));
}

TEST(Tls, a_blocked_wire_keeps_order_and_bounds) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {});
    LAW(client.handshake());
    client.read();
    wire.give_room(client.id(), 0);
    std::string batch;
    for (unsigned i = 0; i < 500; ++i) batch += kGet;
    client.write(batch + "GET /big HTTP/1.1\r\nHost: h\r\n\r\n" + kGet);
    LAW(wire.connections().arena().bytes_in_use() < 400000);
    std::string all;
    for (unsigned i = 0; i < 20000 && all.size() < 501 * 114 + 1048576; ++i) {
        wire.give_room(client.id(), 5000);
        all += client.read();
    }
    Statuses wanted(502, 200);
    LAW(statuses(all) == wanted, << all.size());
}

// In pieces of one byte to more than a record, with pauses and with room in bits.
TEST(Tls, streams_are_sent_whole) {
    class Growing final : public ContentStream {
      public:
        Piece read(std::span<char> room) override {
            const std::size_t size = std::min(room.size(), next_);
            std::fill_n(room.begin(), size, static_cast<char>('a' + next_ % 26));
            next_ = next_ * 3 / 2 + 1;
            if (next_ > 100000) return {size, State::kEnd};
            return {size, next_ % 2 == 0 ? State::kLater : State::kMore};
        }

      private:
        std::size_t next_ = 1;
    };
    Waker waker;
    Router::Builder routes;
    routes.add(kAnyMethod, "/stream", [&](const Request&, ResponseWriter& writer) {
        waker = writer.waker();
        return writer.write_stream(200, {}, std::make_unique<Growing>()) ? Reason::kNone
                                                                         : writer.fault();
    });
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    const Certificate certificate("a.example");
    std::string first;
    for (const std::size_t room : {std::size_t{1} << 30, std::size_t{1000}, std::size_t{20000}}) {
        Wire wire(settings);
        wire.connections().set_tls(load(settings_for({&certificate})));
        Client client(wire, {});
        LAW(client.handshake());
        wire.give_room(client.id(), room);
        client.write("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
        std::string all;
        for (unsigned i = 0; i < 1000 && !all.ends_with("\r\n0\r\n\r\n"); ++i) {
            waker.wake();
            wire.deliver();
            wire.give_room(client.id(), room);
            all += client.read();
        }
        LAW(all.ends_with("\r\n0\r\n\r\n") && all.size() > 50000, << all.size());
        if (first.empty()) first = all;
        LAW(all == first);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

// RFC 8446 4.6.3: each asks for an answer, and the client reads none of them.
TEST(Tls, a_flood_of_key_updates_is_bounded) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {TLS1_3_VERSION, nullptr, {}});
    LAW(client.handshake());
    client.read();
    wire.give_room(client.id(), 0);
    unsigned updates = 0;
    for (; updates < 100000 && wire.reading(client.id()) && wire.alive(client.id()); ++updates) {
        CHECK(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED) == 1);
        ERR_clear_error();
        SSL_do_handshake(client.ssl());
        client.move();
    }
    LAW(updates > 100 && updates < 100000, << updates);
    LAW(wire.connections().arena().bytes_in_use() < 700000);
    // Whoever reads after all is served.
    wire.give_room(client.id(), 1U << 30);
    client.write(kGet);
    LAW(statuses(client.read()) == Statuses{200});
    LAW(wire.connections().arena().bytes_in_use() == 0);
}

TEST(Tls, https_targets_are_for_this_port) {
    const Certificate certificate("a.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&certificate})));
    Client client(wire, {});
    LAW(client.handshake());
    client.write("GET https://h/hello HTTP/1.1\r\nHost: h\r\n\r\n");
    LAW(statuses(client.read()) == Statuses{200});
}

TEST(Tls, client_certificates_can_be_required) {
    const Certificate certificate("a.example");
    TlsSettings settings = settings_for({&certificate});
    settings.client_ca = certificate.certificate_file;
    settings.client_verify = ClientVerify::kRequired;
    settings.version_max = TLS1_2_VERSION;
    Wire wire;
    wire.connections().set_tls(load(settings));
    Client without(wire, {});
    LAW(!without.handshake());
    Client with(wire, {});
    CHECK(SSL_use_certificate_file(with.ssl(), certificate.certificate_file.c_str(),
                                   SSL_FILETYPE_PEM) == 1);
    CHECK(SSL_use_PrivateKey_file(with.ssl(), certificate.key_file.c_str(), SSL_FILETYPE_PEM) == 1);
    LAW(with.handshake());
    with.write(kGet);
    LAW(statuses(with.read()) == Statuses{200});
}

// What a handler is told, in a line.
std::string facts_line(const Request& request) {
    const std::optional<TlsFacts> facts = request.tls();
    LAW(facts.has_value() == request.is_tls());
    if (!facts) return "none";
    return facts->version + '|' + facts->cipher + '|' + facts->server_name + '|' + facts->protocol +
           '|' + facts->client_subject;
}

TEST(Tls, what_was_agreed_is_told_to_handlers) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/facts",
               [](const Request& request, ResponseWriter& writer) {
                   return writer.answer(200, {}, facts_line(request));
               },
               {.wants_content = true});
    const auto router = built(routes);
    ServerSettings served;
    served.router = router.get();
    const Certificate certificate("a.example");
    TlsSettings settings = settings_for({&certificate});
    settings.client_ca = certificate.certificate_file;
    settings.client_verify = ClientVerify::kOptional;
    Wire wire(served);
    wire.connections().set_tls(load(settings));
    // With its content in the same record, and in another one.
    const std::string head = "POST /facts HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
    const auto told = [&](const ClientOptions& options, bool with_certificate) {
        Client client(wire, options);
        if (with_certificate) {
            CHECK(SSL_use_certificate_file(client.ssl(), certificate.certificate_file.c_str(),
                                           SSL_FILETYPE_PEM) == 1);
            CHECK(SSL_use_PrivateKey_file(client.ssl(), certificate.key_file.c_str(),
                                          SSL_FILETYPE_PEM) == 1);
        }
        LAW(client.handshake());
        client.write(head + "x");
        const std::string at_once = client.read();
        client.write(head);
        client.write("x");
        LAW(client.read() == at_once, << at_once);
        LAW(at_once.find(SSL_get_cipher_name(client.ssl())) != std::string::npos, << at_once);
        return at_once.substr(at_once.find("\r\n\r\n") + 4);
    };
    const std::string plain = told({TLS1_2_VERSION, nullptr, {}}, false);
    LAW(plain.starts_with("TLSv1.2|") && plain.ends_with("|||"), << plain);
    const std::string full = told({TLS1_3_VERSION, "b.Example", "\x08http/1.1"}, true);
    LAW(full.starts_with("TLSv1.3|TLS_") && full.ends_with("|b.Example|http/1.1|CN=a.example"),
        << full);
    // What could forge a line of a log is not handed on.
    const std::string forged = told({0, "a.example\r\nX", {}}, false);
    LAW(forged.ends_with("|||"), << forged);
    const std::uint32_t id = wire.connect();
    wire.feed(id, head + "x");
    LAW(wire.sent(id).ends_with("\r\n\r\nnone"));
}

// Whatever a name is made of, its text is one line of ASCII.
TEST(Tls, a_subject_is_text_without_control_characters) {
    const Certificate certificate("a\r\nb,\xC3\xA9");
    TlsSettings settings = settings_for({&certificate});
    settings.client_ca = certificate.certificate_file;
    settings.client_verify = ClientVerify::kRequired;
    std::string subject;
    Router::Builder routes;
    routes.add(kAnyMethod, "/{rest...}", [&](const Request& request, ResponseWriter& writer) {
        subject = request.tls().value_or(TlsFacts()).client_subject;
        return writer.answer(204, {}, {});
    });
    const auto router = built(routes);
    ServerSettings served;
    served.router = router.get();
    Wire wire(served);
    wire.connections().set_tls(load(settings));
    Client client(wire, {});
    CHECK(SSL_use_certificate_file(client.ssl(), certificate.certificate_file.c_str(),
                                   SSL_FILETYPE_PEM) == 1);
    CHECK(SSL_use_PrivateKey_file(client.ssl(), certificate.key_file.c_str(), SSL_FILETYPE_PEM) ==
          1);
    LAW(client.handshake());
    client.write(kGet);
    LAW(subject.starts_with("CN=a\\0D\\0Ab\\,"), << subject);
    LAW(std::all_of(subject.begin(), subject.end(), [](char c) { return c > ' ' && c < 127; }),
        << subject);
}

TEST(Tls, new_certificates_are_for_new_connections) {
    const Certificate first("a.example");
    const Certificate second("b.example");
    Wire wire;
    wire.connections().set_tls(load(settings_for({&first})));
    Client old_client(wire, {});
    LAW(old_client.handshake());
    wire.connections().set_tls(load(settings_for({&second})));
    Client new_client(wire, {});
    LAW(new_client.handshake());
    X509* const certificate = SSL_get1_peer_certificate(new_client.ssl());
    LAW(X509_check_host(certificate, "b.example", 0, 0, nullptr) == 1);
    X509_free(certificate);
    old_client.write(kGet);
    LAW(statuses(old_client.read()) == Statuses{200});
}

TEST(Tls, what_cannot_be_used_is_said_in_one_line) {
    const Certificate first("a.example");
    const Certificate second("b.example");
    std::string error;
    TlsSettings settings;
    LAW(TlsContext::load(settings, error) == nullptr && !error.empty());
    settings.pairs = {{first.certificate_file, second.key_file}};
    LAW(TlsContext::load(settings, error) == nullptr && error.find('\n') == std::string::npos);
    settings.pairs = {{"/nowhere", first.key_file}};
    LAW(TlsContext::load(settings, error) == nullptr &&
        error.find("/nowhere") != std::string::npos);
    settings = settings_for({&first});
    settings.ciphers = "NO-SUCH-CIPHER";
    LAW(TlsContext::load(settings, error) == nullptr);
}

TEST(Tls, a_fifo_in_place_of_a_file_is_said_and_not_waited_for) {
    const Certificate certificate("a.example");
    const std::string fifo = testing::TempDir() + "httpmark-fifo-" + std::to_string(getpid());
    CHECK(mkfifo(fifo.c_str(), 0600) == 0);
    for (const unsigned which : {0U, 1U, 2U}) {
        std::string error;
        TlsSettings settings = settings_for({&certificate});
        if (which == 0) settings.pairs[0].certificate = fifo;
        if (which == 1) settings.pairs[0].key = fifo;
        if (which == 2) settings.client_ca = fifo;
        LAW(TlsContext::load(settings, error) == nullptr &&
                error.find(fifo + " is a FIFO") != std::string::npos,
            << which << ": " << error);
    }
    unlink(fifo.c_str());
}

// RFC 9325 4.2: a client that offers nothing else finds no cipher.
TEST(Tls, without_a_word_tls_1_2_has_forward_secrecy_and_no_cbc) {
    SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_set_cipher_list(context, TlsSettings{}.ciphers.c_str()) == 1);
    const STACK_OF(SSL_CIPHER)* const all = SSL_CTX_get_ciphers(context);
    unsigned old = 0;
    for (int i = 0; i < sk_SSL_CIPHER_num(all); ++i) {
        const SSL_CIPHER* const one = sk_SSL_CIPHER_value(all, i);
        if (std::string(SSL_CIPHER_get_version(one)) == "TLSv1.3") continue;
        ++old;
        LAW(SSL_CIPHER_is_aead(one) == 1 && SSL_CIPHER_get_kx_nid(one) == NID_kx_ecdhe,
            << SSL_CIPHER_get_name(one));
    }
    SSL_CTX_free(context);
    LAW(old > 0);
}

}  // namespace
}  // namespace httpmark
