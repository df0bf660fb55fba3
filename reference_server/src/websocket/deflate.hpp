// The permessage-deflate extension, RFC 7692: what is negotiated, and messages compressed and
// decompressed by it. It is off unless an application turns it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "websocket/message_buffer.hpp"
#include "websocket/violation.hpp"

struct z_stream_s;

namespace httpmark::websocket {

// What was agreed. Windows are powers of two; a context that is not taken over costs no memory
// between messages and compresses less. A small window of the client's saves memory of the client
// alone: the server can read references of any distance.
struct DeflateParameters {
    bool server_no_context_takeover = false;
    bool client_no_context_takeover = false;
    std::uint8_t server_max_window_bits = 15;
    std::uint8_t client_max_window_bits = 15;
};

struct DeflateSettings {
    bool enabled = false;
    // What the server asks for by itself; a client's offer can only narrow it.
    DeflateParameters wanted = {};
    std::uint8_t level = 6;
    std::uint64_t size_min = 64;  // shorter messages are sent as they are
};

// Decompresses the messages of one client.
class MessageInflater {
  public:
    // Memory of an arena counts against its ceiling; without one, it is the heap's.
    explicit MessageInflater(const DeflateParameters& parameters, Arena* arena = nullptr);
    ~MessageInflater();
    MessageInflater(const MessageInflater&) = delete;
    MessageInflater& operator=(const MessageInflater&) = delete;

    // Appends what `piece` holds, and never more than `size_max` bytes to a message:
    // kMessageTooLarge as soon as there is one more. What was appended before a violation is the
    // message's, too.
    Violation take(std::string_view piece, MessageBuffer& message, std::uint64_t size_max);
    // After the last piece: the end that the client left out (7.2.2), and a look whether the
    // message stops where a block does.
    Violation finish(MessageBuffer& message, std::uint64_t size_max);

  private:
    bool open();
    void close();

    Arena* arena_;
    std::unique_ptr<z_stream_s> stream_;  // made with the first compressed message
    DeflateParameters parameters_;
    bool at_stream_start_ = true;
};

// Compresses the messages of the server.
class MessageDeflater {
  public:
    MessageDeflater(const DeflateParameters& parameters, std::uint8_t level,
                    Arena* arena = nullptr);
    ~MessageDeflater();
    MessageDeflater(const MessageDeflater&) = delete;
    MessageDeflater& operator=(const MessageDeflater&) = delete;

    // Appends the payload of a frame that holds all of `message`. False when memory is short: then
    // nothing more can be compressed on this connection.
    bool deflate(std::string_view message, MessageBuffer& payload);

  private:
    bool open();

    void close();

    Arena* arena_;
    std::unique_ptr<z_stream_s> stream_;
    DeflateParameters parameters_;
    std::uint8_t level_;
};

}  // namespace httpmark::websocket
