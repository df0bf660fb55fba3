// Bytes of a message that comes in parts. It grows as they come, never by what a length announces,
// and short memory is a value, not an exception. Between messages it holds no memory. (What is
// installed uses no CHECK: applications may have a macro of that name.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "net/arena.hpp"

namespace httpmark::websocket {

class MessageBuffer {
  public:
    // Memory of an arena counts against its ceiling; without one, it is the heap's.
    explicit MessageBuffer(Arena* arena = nullptr) : arena_(arena) {}
    ~MessageBuffer() { clear(); }
    MessageBuffer(const MessageBuffer&) = delete;
    MessageBuffer& operator=(const MessageBuffer&) = delete;

    // Room for `size` more bytes behind those that are there; nullptr when memory is short. What
    // was written there counts after commit().
    char* prepare(std::size_t size) {
        if (capacity_ - size_ < size && !grow(size_ + size)) return nullptr;
        return data_ + size_;
    }
    void commit(std::size_t size) {
        if (size > capacity_ - size_) [[unlikely]]
            std::abort();
        size_ += size;
    }
    bool append(std::string_view octets) {
        if (octets.empty()) return true;
        char* const room = prepare(octets.size());
        if (room == nullptr) return false;
        std::memcpy(room, octets.data(), octets.size());
        commit(octets.size());
        return true;
    }
    void clear() {
        give_back();
        data_ = nullptr;
        size_ = 0;
        capacity_ = 0;
    }
    void remove_suffix(std::size_t size) {
        if (size > size_) [[unlikely]]
            std::abort();
        size_ -= size;
    }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    std::string_view view() const { return {data_, size_}; }

  private:
    bool grow(std::size_t needed) {
        std::size_t capacity = std::max({needed, capacity_ * 2, std::size_t{256}});
        if (arena_ == nullptr) {
            char* const data = static_cast<char*>(std::realloc(data_, capacity));
            if (data == nullptr) return false;
            data_ = data;
        } else {
            char* const data = arena_->allocate(capacity, capacity);
            if (data == nullptr) return false;
            if (size_ != 0) std::memcpy(data, data_, size_);
            give_back();
            data_ = data;
        }
        capacity_ = capacity;
        return true;
    }
    void give_back() {
        if (arena_ == nullptr) {
            std::free(data_);
        } else {
            arena_->release(data_, capacity_);
        }
    }

    Arena* arena_;
    char* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace httpmark::websocket
