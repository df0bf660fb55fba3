// Where to listen: found out once for the process, then done by each worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/server.hpp"

namespace httpmark {

// One place for each address and port that is asked for. False with `error` set.
bool find_places(const ServerOptions& options, std::vector<Server::Place>& places,
                 StartError& error);

// A listening socket, or -1 with `error` set. With `shared` other workers may bind too.
int listen_on(const std::string& address, int port, bool shared, const Limits& limits,
              StartError& error);

// Which socket of a SO_REUSEPORT group a connection goes to: the one numbered as the CPU it arrives
// on (counted round where there are fewer workers). False with `error` set.
bool steer_by_cpu(int socket, unsigned workers, StartError& error);

// The Unix sockets that are ours: their files are gone when we are.
class UnixSockets {
  public:
    UnixSockets() = default;
    ~UnixSockets();
    UnixSockets(const UnixSockets&) = delete;
    UnixSockets& operator=(const UnixSockets&) = delete;

    // False with `error` set.
    bool listen_on(const std::string& path, std::uint64_t backlog, StartError& error);
    const std::vector<int>& sockets() const { return sockets_; }
    void close_sockets();
    void remove_files();

  private:
    std::vector<int> sockets_;
    std::vector<std::string> paths_;
};

}  // namespace httpmark
