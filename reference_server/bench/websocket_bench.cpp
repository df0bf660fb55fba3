// Nanoseconds a message of a WebSocket session, without a kernel underneath: frames of a client as
// a receive brings them are read, unmasked and checked, and where asked for, sent back. Also what
// unmasking alone takes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "websocket/mask.hpp"
#include "websocket/session.hpp"

namespace {

using namespace httpmark;
using namespace httpmark::websocket;

// Of this thread: what else runs on the machine counts less than in time that passes.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Takes all and keeps nothing.
class Drain final : public FrameSink {
  public:
    char* prepare(std::size_t size) override {
        if (room_.size() - used_ < size) used_ = 0;
        CHECK(size <= room_.size());
        char* const out = room_.data() + used_;
        used_ += size;
        return out;
    }

  private:
    std::vector<char> room_ = std::vector<char>(1U << 18);
    std::size_t used_ = 0;
};

constexpr unsigned kRounds = 15;
constexpr std::size_t kBytes = 16 * 1024;  // stays in the first-level cache

struct Sample {
    const char* name;
    unsigned first;
    std::size_t size;
    bool echo;
};
constexpr Sample kSamples[] = {
    {"text 32", 0x81, 32, false},          {"text 32, echo", 0x81, 32, true},
    {"binary 32", 0x82, 32, false},        {"binary 32, echo", 0x82, 32, true},
    {"text 1024, echo", 0x81, 1024, true}, {"binary 1024, echo", 0x82, 1024, true},
    {"text 65536", 0x81, 65536, false},    {"binary 65536", 0x82, 65536, false},
};

std::string frame(unsigned first, std::size_t size) {
    std::string out(kFrameHeadMax, '\0');
    out.resize(write_frame_head(out.data(), Opcode::kText, false, size));
    out[0] = static_cast<char>(first);
    out[1] = static_cast<char>(out[1] | '\x80');
    std::string payload(size, 'm');
    const std::uint32_t key = 0x3D21FA37;
    apply_mask(payload.data(), size, key, 0);
    out.append(reinterpret_cast<const char*>(&key), sizeof key);
    return out + payload;
}

void report(const char* name, std::size_t size, std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf("%-18s %9.1f ns a message (%.1f-%.1f)  %6.2f GB/s\n", name, median, times.front(),
                times.back(), static_cast<double>(size) / median);
}

// A session changes what it reads: each round is given a fresh copy, which is not counted.
void measure(const Sample& sample) {
    const std::string one = frame(sample.first, sample.size);
    const std::size_t count = std::max<std::size_t>(kBytes / one.size(), 1);
    const unsigned repeats = sample.size > kBytes ? 100 : 200;
    std::string stream;
    for (std::size_t i = 0; i < count; ++i) stream += one;
    std::string work = stream;
    Drain drain;
    Session session(drain, {}, {});
    std::vector<double> times;
    for (unsigned round = 0; round < kRounds; ++round) {
        double took = 0;
        for (unsigned repeat = 0; repeat < repeats; ++repeat) {
            std::memcpy(work.data(), stream.data(), stream.size());
            std::span<char> input(work);
            Event event;
            std::size_t messages = 0;
            const double begin = cpu_ns();
            while (session.receive(input, event)) {
                ++messages;
                if (!sample.echo) continue;
                CHECK((event.is_text ? session.send_text(event.message)
                                     : session.send_binary(event.message)) == Sent::kYes);
            }
            took += cpu_ns() - begin;
            CHECK(messages == count && event.message.size() == sample.size);
        }
        times.push_back(took / static_cast<double>(count * repeats));
    }
    report(sample.name, sample.size, times);
}

void measure_mask(std::size_t size) {
    std::vector<char> octets(size + 8);
    std::vector<double> times;
    const std::size_t repeats = (std::size_t{1} << 24) / (size + 16);
    for (unsigned round = 0; round < kRounds; ++round) {
        const double begin = cpu_ns();
        for (std::size_t i = 0; i < repeats; ++i) {
            apply_mask(octets.data() + i % 8, size, 0x3D21FA37, i);
        }
        times.push_back((cpu_ns() - begin) / static_cast<double>(repeats));
    }
    report(("unmask " + std::to_string(size)).c_str(), size, times);
}

}  // namespace

int main() {
    for (const Sample& sample : kSamples) measure(sample);
    for (const std::size_t size : {5U, 32U, 125U, 1024U, 65536U}) measure_mask(size);
    return 0;
}
