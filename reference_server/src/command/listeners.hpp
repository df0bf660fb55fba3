// Where to listen: found out once for the process, then done by each worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command/options.hpp"

namespace httpmark {

struct Place {
    std::string address;
    int port;
    bool tls;
};

bool is_address(const std::string& text);  // false with the complaint made

// One place for each address and port that is asked for. 0, or the exit code with the complaint
// made.
int find_places(const Options& options, std::vector<Place>& places);

// A listening socket, or -1 with the complaint made. With `shared` other workers may bind too.
int listen_on(const std::string& address, int port, bool shared, std::uint64_t backlog);

// Which socket of a SO_REUSEPORT group a connection goes to: the one numbered as the CPU it arrives
// on (counted round where there are fewer workers). False with the complaint made.
bool steer_by_cpu(int socket, unsigned workers);

// The Unix sockets that are ours: their files are gone when we are.
class UnixSockets {
  public:
    UnixSockets() = default;
    ~UnixSockets();
    UnixSockets(const UnixSockets&) = delete;
    UnixSockets& operator=(const UnixSockets&) = delete;

    bool listen_on(const std::string& path,
                   std::uint64_t backlog);  // false with the complaint made
    const std::vector<int>& sockets() const { return sockets_; }
    void close_sockets();
    void remove_files();

  private:
    std::vector<int> sockets_;
    std::vector<std::string> paths_;
};

}  // namespace httpmark
