// Many connections with a seeded wire: splits, blocked output, half-closes, resets and clock jumps
// in any order. Each transcript must be what the same bytes get when all goes well, cut short
// only where the wire was cut; and in the end nothing is left behind.
#include <algorithm>
#include <string>
#include <vector>

#include "wire.hpp"

namespace httpmark {
namespace {

std::string random_request(Random& random) {
    const std::string host = "Host: a\r\n";
    switch (random() % 12) {
        case 0:
        case 1:
        case 2:
            return "GET /hello HTTP/1.1\r\n" + host + "\r\n";
        case 3: {
            const std::size_t size = random() % 3000;
            return "POST /body HTTP/1.1\r\n" + host + "Content-Length: " + std::to_string(size) +
                   "\r\n\r\n" + std::string(size, 'b');
        }
        case 4: {
            std::string out =
                "POST /mirror HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n";
            for (unsigned i = random() % 5; i > 0; --i) {
                const unsigned size = 1 + random() % 15;
                out += std::string(1, "0123456789abcdef"[size]) + ";x=\"y\"\r\n" +
                       std::string(size, 'c') + "\r\n";
            }
            return out + "0\r\nT: v\r\n\r\n";
        }
        case 5:
            return "GET /404 HTTP/1.1\r\n" + host + "\r\n";
        case 6:
            return "POST /get-only HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc";
        case 7:
            return "GET /big HTTP/1.1\r\n" + host + "\r\n";
        case 8:
            return "HEAD /echo?a=1 HTTP/1.1\r\n" + host + "\r\n";
        case 9:
            return "FOO /%41 HTTP/1.2\r\n" + host + "\r\n";
        case 10:
            return random() % 4 == 0
                       ? "GET /hello HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
                       : "\r\nGET /204 HTTP/1.1\r\n" + host + "\r\n";
        default:
            return random() % 6 == 0 ? "GET /%zz HTTP/1.1\r\n" + host + "\r\n"
                                     : "GET /304 HTTP/1.1\r\n" + host + "\r\n";
    }
}

struct Client {
    std::uint32_t id;
    std::string to_send;
    std::string expected;
    std::size_t fed = 0;
    std::size_t compared = 0;  // bytes of the transcript
    bool ended = false;
    bool disturbed = false;  // a timeout may have cut in
};

std::vector<Client> connect_clients(Wire& wire, const ServerSettings& settings, Random& random) {
    std::vector<Client> clients;
    for (unsigned i = 0; i < 8; ++i) {
        Client client{wire.connect(), {}, {}};
        for (unsigned k = 1 + random() % 12; k > 0; --k) client.to_send += random_request(random);
        client.expected = talk_in(client.to_send, client.to_send.size(), settings, 0).sent;
        clients.push_back(client);
    }
    return clients;
}

void feed(Wire& wire, Client& client, std::size_t size_max) {
    const std::size_t size = std::min<std::size_t>(size_max, client.to_send.size() - client.fed);
    wire.feed(client.id, std::string_view(client.to_send).substr(client.fed, size));
    client.fed += size;
}

// Something befalls one of the connections, or the clock of all.
void turn(Wire& wire, std::vector<Client>& clients, Client& client, Random& random) {
    switch (random() % 10) {
        case 0:
            wire.give_room(client.id, random() % 3000);
            break;
        case 1:
            wire.give_room(client.id, 1U << 30);
            break;
        case 2:
            wire.pass(random() % 200);
            break;
        case 3:
            if (random() % 60 == 0) {
                wire.pass(100000);
                for (Client& other : clients) other.disturbed = true;
            }
            break;
        case 4:
            if (random() % 40 == 0 && wire.alive(client.id)) {
                wire.connections().on_broken(client.id);
                client.disturbed = true;
            }
            break;
        case 5:
            if (random() % 30 == 0) {
                if (client.fed < client.to_send.size()) client.disturbed = true;
                wire.end(client.id);
                client.ended = true;
            }
            break;
        default: {
            // An engine may hand over what it had taken before it was told to stop.
            if (!wire.alive(client.id) || client.ended) break;
            if (!wire.reading(client.id) && random() % 3 != 0) break;
            const std::size_t most = random() % 3 == 0 ? 5000 : 40;
            feed(wire, client, random() % most + 1);
            break;
        }
    }
}

// Whatever has been sent so far is the beginning of what was to be sent.
void compare_so_far(Wire& wire, Client& client) {
    if (client.disturbed) return;
    const std::string& sent = wire.sent(client.id);
    LAW(client.expected.compare(client.compared, sent.size() - client.compared, sent,
                                client.compared) == 0,
        << visible(client.to_send) << "\n"
        << visible(sent));
    client.compared = std::min(sent.size(), client.expected.size());
}

// With room for all answers: the rest is sent, and the answers are whole.
void finish(Wire& wire, Client& client, Random& random) {
    wire.give_room(client.id, 1U << 30);
    for (unsigned k = 0; k < 100000 && client.fed < client.to_send.size() &&
                         wire.alive(client.id) && !client.ended && wire.reading(client.id);
         ++k) {
        feed(wire, client, random() % 200 + 1);
    }
    if (!client.disturbed) {
        LAW(wire.sent(client.id) == client.expected, << visible(client.to_send) << "\n"
                                                     << wire.sent(client.id).size() << " of "
                                                     << client.expected.size());
    }
    wire.end(client.id);
}

void simulate(std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ServerSettings settings;
    settings.kernel = scan_kernels()[0];
    for (const ScanKernel* kernel : scan_kernels()) {
        if (kernel->supported() && random() % 2 == 0) settings.kernel = kernel;
    }
    Wire wire(settings);
    std::vector<Client> clients = connect_clients(wire, settings, random);
    for (unsigned turns = 0; turns < 600; ++turns) {
        Client& client = clients[random() % clients.size()];
        turn(wire, clients, client, random);
        compare_so_far(wire, client);
    }
    for (Client& client : clients) finish(wire, client, random);
    wire.pass(100000);
    wire.pass(100000);
    LAW(wire.connections().open_count() == 0);
    LAW(wire.connections().arena().bytes_in_use() == 0);
}

TEST(Simulation, seeded_wires) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) simulate(seed);
}

}  // namespace
}  // namespace httpmark
