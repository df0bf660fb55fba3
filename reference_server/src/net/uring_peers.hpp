// What a ring's loop knows of each of its connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/loop.hpp"
#include "net/uring_buffers.hpp"

namespace httpmark {

struct UringPeer {
    LoopToken token = LoopEvents::kRefused;
    std::uint32_t generation = 0;
    std::uint32_t send_begin = 0;
    std::uint32_t send_end = 0;
    std::uint16_t send_buffer = SendBuffers::kNone;
    bool wants_octets : 1 = false;
    bool wants_room : 1 = false;
    bool receiving : 1 = false;
    bool receive_cancelled : 1 = false;
    bool polling : 1 = false;
    bool shutdown_due : 1 = false;
    bool shutting : 1 = false;
    bool closing : 1 = false;
    bool broken : 1 = false;
    bool listed : 1 = false;   // among those that are looked at again
    bool stirred : 1 = false;  // bytes have come since the last look

    // As new, for the next owner of the handle; a place in the list stays with the handle.
    void forget() {
        const std::uint32_t next_generation = generation + 1;
        const bool was_listed = listed;
        *this = UringPeer();
        generation = next_generation;
        listed = was_listed;
    }
};

// By handle. In chunks, which neither move nor leave holes in the address space when they get more.
class UringPeers {
  public:
    UringPeer& operator[](std::int32_t handle) {
        const auto index = static_cast<std::size_t>(handle);
        while (chunks_.size() <= index / kChunk) {
            chunks_.push_back(std::make_unique<UringPeer[]>(kChunk));
        }
        return chunks_[index / kChunk][index % kChunk];
    }
    std::int32_t size() const { return static_cast<std::int32_t>(chunks_.size() * kChunk); }

  private:
    static constexpr std::size_t kChunk = 1024;

    std::vector<std::unique_ptr<UringPeer[]>> chunks_;
};

}  // namespace httpmark
