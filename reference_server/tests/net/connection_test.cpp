// Slots, batches, backpressure and ceilings, with an artificial wire.
#include "net/connection.hpp"

#include <string>
#include <vector>

#include "net/requests.hpp"

namespace httpmark {
namespace {

TEST(Connection, a_slot_is_64_octets_and_an_idle_connection_is_nothing_more) {
    LAW(sizeof(Connection) == 64);
    Wire wire;
    for (unsigned i = 0; i < 100; ++i) {
        const std::uint32_t id = wire.connect();
        wire.feed(id, kGet);
        LAW(statuses(wire.sent(id)) == Statuses{200});
    }
    LAW(wire.connections().arena().bytes_in_use() == 0);
}

TEST(Connection, a_batch_is_answered_in_order_with_one_send) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    std::string batch;
    for (unsigned i = 0; i < 256; ++i) batch += kGet;
    wire.feed(id, batch);
    LAW(wire.sends(id) == 1);
    LAW(statuses(wire.sent(id)) == Statuses(256, 200));
    const Talk talk =
        talk_every_way(request("POST /body HTTP/1.1", "Content-Length: 1\r\n", "a") +
                       request("GET /404 HTTP/1.1") + request("HEAD /hello HTTP/1.1"));
    LAW(talk.sent.find("\r\n\r\na") != std::string::npos);
    LAW(talk.sent.find("404") < talk.sent.rfind("200"));
}

TEST(Connection, what_is_not_taken_waits_and_nothing_more_is_read) {
    for (const std::size_t room : {0U, 1U, 100U, 5000U}) {
        ServerSettings settings;
        settings.limits.pending_output_max = 65536;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.give_room(id, room);
        std::string batch;
        for (unsigned i = 0; i < 1000; ++i) batch += kGet;
        wire.feed(id, batch);
        LAW(!wire.reading(id));
        LAW(wire.sent(id).size() == room);
        LAW(wire.connections().arena().bytes_in_use() < 512 * 1024);
        for (unsigned turn = 0; turn < 10000 && wire.sent(id).size() < 114000; ++turn)
            wire.give_room(id, 777);
        LAW(statuses(wire.sent(id)) == Statuses(1000, 200), << wire.sent(id).size());
        LAW(wire.reading(id));
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(Connection, what_waits_may_grow_to_its_bound_before_reading_stops) {
    for (const std::uint64_t bound : {65536U, 262144U, 1000000U}) {
        ServerSettings settings;
        settings.limits.pending_output_max = bound;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 0);
        std::size_t answered = 0;
        while (wire.reading(id)) {
            LAW(answered * 114 <= bound, << answered);
            wire.feed(id, kGet);
            ++answered;
        }
        LAW(answered == bound / 114 + 1, << answered);
        LAW(wire.connections().arena().bytes_in_use() < 2 * bound + 131072);
        for (unsigned turn = 0; turn < 40 && wire.sent(id).size() < answered * 114; ++turn)
            wire.give_room(id, 33333);
        LAW(statuses(wire.sent(id)) == Statuses(answered, 200), << wire.sent(id).size());
        LAW(wire.reading(id) && wire.connections().arena().bytes_in_use() == 0);
    }
    // The time limit on sending holds though requests still come.
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 0);
    wire.feed(id, kGet);
    for (unsigned i = 0; i < 29; ++i) {
        wire.pass(1000);
        LAW(wire.alive(id) && wire.reading(id));
        wire.feed(id, kGet);
    }
    wire.pass(1000 + 2 * kTickMs);
    LAW(!wire.alive(id));
}

// While content comes, reading goes on; it stops only where what came has to wait for room.
TEST(Connection, content_is_read_on_until_it_is_whole) {
    const std::string content(40, 'c');
    for (const std::string& text :
         {request("POST /body HTTP/1.1", "Content-Length: 40\r\n", content),
          request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n",
                  "28\r\n" + content + "\r\n0\r\nA: b\r\n\r\n"),
          request("POST /404 HTTP/1.1", "Content-Length: 40\r\n", content)}) {
        const std::string all = kGet + text;
        const std::string whole = talk_in(all, all.size(), {}, 0).sent;
        for (const bool has_room : {true, false}) {  // for the answer before it
            Wire wire;
            const std::uint32_t id = wire.connect();
            if (!has_room) wire.give_room(id, 0);
            wire.feed(id, kGet);
            for (std::size_t i = 0; i < text.size(); ++i) {
                LAW(wire.reading(id), << i << has_room << visible(text));
                wire.feed(id, std::string_view(text).substr(i, 1));
            }
            LAW(wire.reading(id), << visible(text));
            wire.give_room(id, 100000);
            LAW(wire.sent(id) == whole, << visible(wire.sent(id)));
        }
    }
}

TEST(Connection, content_waits_for_room_and_no_octet_of_it_is_lost) {
    ServerSettings settings;
    settings.limits.pending_output_max = 65536;
    std::string batch;
    for (unsigned i = 0; i < 1000; ++i) batch += kGet;
    const std::string content = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (const std::string& text :
         {request("POST /body HTTP/1.1", "Content-Length: 36\r\n", content),
          request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n",
                  "14\r\n" + content.substr(0, 20) + "\r\n10\r\n" + content.substr(20) +
                      "\r\n0\r\nA: b\r\n\r\n")}) {
        const std::string all = batch + text + kGet;
        const std::string whole = talk_in(all, all.size(), settings, 0).sent;
        LAW(whole.find(content) != std::string::npos);
        for (std::size_t cut = 1; cut < text.size(); ++cut) {
            Wire wire(settings);
            const std::uint32_t id = wire.connect();
            wire.give_room(id, 1000);
            wire.feed(id, batch + text.substr(0, cut));
            LAW(!wire.reading(id), << cut);
            // An engine may hand over what it had taken before it was told to stop.
            wire.feed(id, text.substr(cut, 1));
            LAW(!wire.reading(id), << cut);
            for (unsigned turn = 0; turn < 100 && !wire.reading(id); ++turn)
                wire.give_room(id, 5000);
            LAW(wire.reading(id), << cut);
            wire.feed(id, text.substr(cut + 1) + kGet);
            for (unsigned turn = 0; turn < 100 && wire.sent(id).size() < whole.size(); ++turn)
                wire.give_room(id, 5000);
            LAW(wire.sent(id) == whole, << cut << " " << wire.sent(id).size());
            LAW(wire.reading(id) && wire.connections().arena().bytes_in_use() == 0, << cut);
        }
    }
}

TEST(Connection, a_generated_answer_takes_no_memory) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 1000);
    wire.feed(id, request("GET /big HTTP/1.1") + kGet);
    LAW(wire.connections().arena().bytes_in_use() < 4096);
    for (unsigned turn = 0; turn < 2000 && wire.alive(id) && !wire.reading(id); ++turn)
        wire.give_room(id, 1000);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200}));
}

TEST(Connection, over_the_memory_ceiling_the_newest_gets_503) {
    ServerSettings settings;
    settings.limits.memory_max = 200000;
    Wire wire(settings);
    const std::uint32_t first = wire.connect();
    wire.feed(first,
              request("POST /body HTTP/1.1", "Content-Length: 60000\r\n", std::string(1000, 'a')));
    const std::uint32_t second = wire.connect();
    wire.feed(second, request("POST /body HTTP/1.1", "Content-Length: 500000\r\n",
                              std::string(60000, 'b')));
    for (unsigned i = 0; i < 7 && !wire.shut(second); ++i)
        wire.feed(second, std::string(60000, 'b'));
    LAW(statuses(wire.sent(second)) == Statuses{503} && wire.shut(second));
    wire.feed(first, std::string(59000, 'a'));
    LAW(statuses(wire.sent(first)) == Statuses{200});
}

TEST(Connection, without_memory_for_content_an_answered_request_gets_no_second_answer) {
    ServerSettings settings;
    settings.limits.memory_max = 0;
    Wire wire(settings);
    const std::uint32_t answered = wire.connect();
    wire.feed(answered, request("POST /early HTTP/1.1", "Content-Length: 5000\r\n", "abc"));
    LAW(statuses(wire.sent(answered)) == Statuses{200} && wire.shut(answered));
    const std::uint32_t waiting = wire.connect();
    wire.feed(waiting, request("POST /body HTTP/1.1", "Content-Length: 5000\r\n", "abc"));
    LAW(statuses(wire.sent(waiting)) == Statuses{503} && wire.shut(waiting));
}

TEST(Connection, over_the_connection_ceiling_there_is_503) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.connections().refuse_open(id);
    LAW(statuses(wire.sent(id)) == Statuses{503} && wire.shut(id));
}

TEST(Connection, a_broken_wire_frees_everything) {
    Wire wire;
    for (unsigned i = 0; i < 50; ++i) {
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("POST /body HTTP/1.1", "Content-Length: 5000\r\n", "abc"));
        if (i % 2 == 0) {
            wire.connections().on_broken(id);
        } else {
            wire.break_peer(id);
            wire.feed(id, std::string(4997, 'x'));
        }
        LAW(!wire.alive(id));
    }
    LAW(wire.connections().open_count() == 0 && wire.connections().arena().bytes_in_use() == 0);
}

TEST(Connection, slots_are_used_again_under_a_new_generation) {
    Wire wire;
    const std::uint32_t first = wire.connect();
    const std::uint32_t generation = wire.connections().slot(first).generation;
    LAW(wire.connections().is_current(first, generation));
    wire.connections().on_broken(first);
    LAW(!wire.connections().is_current(first, generation));
    const std::uint32_t second = wire.connect();
    LAW(second == first && !wire.connections().is_current(first, generation));
}

}  // namespace
}  // namespace httpmark
