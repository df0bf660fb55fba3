#include "load/first_answers.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "shared/printable.hpp"
#include "shared/tls.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;

std::int64_t wall_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

// Shuts a socket down when its time is up. A timeout of the socket itself would begin anew with
// each byte that a server trickles, and a TLS record may be many of them.
class Deadline {
  public:
    Deadline(int fd, std::chrono::duration<double> seconds)
        : thread_([this, fd, seconds] {
              std::unique_lock lock(mutex_);
              if (done_.wait_for(lock, seconds, [this] { return is_done_; })) return;
              has_passed_ = true;
              shutdown(fd, SHUT_RDWR);
          }) {}
    ~Deadline() {
        {
            const std::lock_guard lock(mutex_);
            is_done_ = true;
        }
        done_.notify_one();
        thread_.join();
    }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

    bool has_passed() const { return has_passed_; }

  private:
    std::mutex mutex_;
    std::condition_variable done_;
    bool is_done_ = false;
    std::atomic<bool> has_passed_ = false;
    std::thread thread_;  // the last: it uses the others
};

// A blocking connection for one request.
class Asker {
  public:
    Asker(const LoadPlan& plan, LoadReport* report) : plan_(plan), report_(*report) {}
    ~Asker() {
        deadline_.reset();
        tls_.reset();
        if (fd_ >= 0) close(fd_);
    }
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;

    // False: the report says why.
    bool open();
    // The answer, or what is wrong with it, in the report.
    void ask(const LoadRequest& request, ResponseVerifier* verifier);

  private:
    void send_all(const std::string& octets);
    ssize_t receive(std::vector<char>* buffer);
    void tell_end(ssize_t got);
    void judge(const CheckResult& result, const std::string& octets);

    const LoadPlan& plan_;
    LoadReport& report_;
    int fd_ = -1;
    TlsStream tls_;
    std::optional<Deadline> deadline_;
};

bool Asker::open() {
    const Endpoint& server = plan_.server;
    fd_ = socket(server.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto whole_s = static_cast<time_t>(plan_.first_answer_s);
    const auto rest_us =
        static_cast<suseconds_t>((plan_.first_answer_s - static_cast<double>(whole_s)) * 1e6);
    const timeval limit = {whole_s, rest_us};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (fd_ < 0 || connect(fd_, server.sockaddr_ptr(), server.length) != 0) {
        report_.failure = "cannot connect to " + server.text() + ": " + std::strerror(errno);
        return false;
    }
    deadline_.emplace(fd_, std::chrono::duration<double>(plan_.first_answer_s));
    if (plan_.tls == nullptr) return true;
    std::string complaint;
    if (!tls_.connect(*plan_.tls, fd_, &complaint)) {
        if (deadline_->has_passed()) complaint = "no whole handshake in time";
        report_.failure = "no TLS with " + server.text() + ": " + complaint;
        return false;
    }
    report_.tls_version = tls_.version();
    report_.tls_cipher = tls_.cipher();
    return true;
}

void Asker::ask(const LoadRequest& request, ResponseVerifier* verifier) {
    const std::int64_t asked = wall_seconds();
    send_all(request.octets);
    std::string octets;
    std::vector<char> buffer(64 * 1024);
    CheckResult result;
    for (;;) {
        const ssize_t got = receive(&buffer);
        if (got <= 0) {
            tell_end(got);
            return;
        }
        octets.append(buffer.data(), static_cast<std::size_t>(got));
        if (octets.size() > kAnswerBytesMax || result.need > kAnswerBytesMax) {
            ++report_.counts.errors.framing;
            report_.failure = "the first answer is larger than 64 MiB";
            return;
        }
        if (octets.size() < result.need) continue;
        verifier->set_wall_clock(wall_seconds(), asked);  // now: a first answer may take its time
        result = verifier->check(octets);
        while (result.kind == CheckKind::kInterim) {
            octets.erase(0, result.size);
            result.kind = CheckKind::kNeedMore;
            result.need = 0;
            if (!octets.empty()) result = verifier->check(octets);
        }
        if (result.kind == CheckKind::kNeedMore) continue;
        judge(result, octets);
        return;
    }
}

void Asker::send_all(const std::string& octets) {
    std::size_t sent = 0;
    while (sent < octets.size()) {
        const char* rest = octets.data() + sent;
        const std::size_t size = octets.size() - sent;
        const ssize_t part =
            tls_.is_open() ? tls_.send(rest, size) : send(fd_, rest, size, MSG_NOSIGNAL);
        if (part <= 0) return;
        sent += static_cast<std::size_t>(part);
    }
}

ssize_t Asker::receive(std::vector<char>* buffer) {
    // A TLS stream on a blocking socket waits until it has all it was asked for.
    return tls_.is_open() ? tls_.receive(buffer->data(), 1)
                          : recv(fd_, buffer->data(), buffer->size(), 0);
}

// No answer: `got` is what recv() gave last.
void Asker::tell_end(ssize_t got) {
    LoadErrors& errors = report_.counts.errors;
    const bool is_timeout =
        deadline_->has_passed() || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
    ++(is_timeout ? errors.timeout : got == 0 ? errors.closed : errors.reset);
    report_.failure = is_timeout ? "no whole first answer in time"
                      : got == 0 ? "the server closed before its first answer was whole"
                                 : "the server reset the connection before its first answer";
}

void Asker::judge(const CheckResult& result, const std::string& octets) {
    LoadErrors& errors = report_.counts.errors;
    if (result.kind == CheckKind::kStatus) ++report_.counts.statuses[result.status];
    if (result.kind != CheckKind::kVerified) {
        ++(result.kind == CheckKind::kStatus ? errors.status
           : result.kind == CheckKind::kDate ? errors.date
                                             : errors.framing);
        report_.failure = std::string("the first answer is no good: ") + result.why + ": " +
                          printable(std::string_view(octets).substr(
                              0, std::min<std::size_t>(octets.find('\r'), 80)));
    } else if (octets.size() > result.size) {
        ++errors.surplus;
        report_.failure = "bytes after the first answer";
    }
}

}  // namespace

bool learn_first_answers(const LoadPlan& plan, std::vector<ResponseVerifier>* verifiers,
                         LoadReport* report) {
    for (const LoadRequest& request : plan.requests) {
        ResponseVerifier verifier(plan.expected_status, request.is_head);
        Asker asker(plan, report);
        if (!asker.open()) return false;
        asker.ask(request, &verifier);
        if (!report->failure.empty()) return true;
        verifiers->push_back(verifier);
    }
    return true;
}

}  // namespace httpmark
