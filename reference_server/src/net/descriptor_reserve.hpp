// A descriptor that is given up for a moment when there is no other, so that a connection can be
// taken off the queue instead of being announced for ever.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace httpmark {

class DescriptorReserve {
  public:
    DescriptorReserve() = default;
    DescriptorReserve(const DescriptorReserve&) = delete;
    DescriptorReserve& operator=(const DescriptorReserve&) = delete;
    ~DescriptorReserve() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    // Opens it where it was lost: another thread may take what was given up.
    bool hold() {
        if (descriptor_ < 0) descriptor_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        return descriptor_ >= 0;
    }

    enum class Shed : std::uint8_t {
        kGoOn,       // accept() may be called again
        kNoneWaits,  // for want of descriptors accept() fails before it looks at the queue
        kCannot,     // the same failure would come again at once
    };

    // After accept() has failed. The connection that waits is handed to `take`, which closes it or
    // some other descriptor.
    template <typename Take>
    Shed shed_one(int listener, int fault, const Take& take) {
        if (fault == ENOMEM || fault == ENOBUFS) return Shed::kCannot;
        if (fault != EMFILE && fault != ENFILE) return Shed::kGoOn;
        if (!hold()) return Shed::kCannot;
        ::close(descriptor_);
        descriptor_ = -1;
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const bool none_waits = fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (fd >= 0) take(fd);
        if (!hold()) return Shed::kCannot;
        if (none_waits) return Shed::kNoneWaits;
        return fd >= 0 ? Shed::kGoOn : Shed::kCannot;
    }

  private:
    int descriptor_ = -1;
};

}  // namespace httpmark
