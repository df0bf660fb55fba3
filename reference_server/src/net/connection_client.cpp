// What requests tell of who sent them.
#include "net/connection.hpp"

namespace httpmark {

// For the observer: the system is asked once for all answers that go to one connection in a row.
void Connections::ask_for_peer() {
    known_peer_ = transport_.peer(current_id_);
    known_peer_id_ = current_id_;
    known_peer_generation_ = current_->generation;
}

// Requests live as long as the call, in which theirs is the current connection.
std::string Connections::peer() const {
    return transport_.peer(current_id_);
}

bool Connections::is_tls() const {
    return current_->has(Connection::kTls);
}

std::optional<TlsFacts> Connections::tls() const {
    if (current_->tls == nullptr) return std::nullopt;
    return current_->tls->facts();
}

}  // namespace httpmark
