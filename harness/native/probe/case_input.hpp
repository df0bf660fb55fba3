// Standard input: case frames, read as they are wanted.
#ifndef HTTPMARK_NATIVE_PROBE_CASE_INPUT_HPP_
#define HTTPMARK_NATIVE_PROBE_CASE_INPUT_HPP_

#include <cstddef>
#include <string>

#include "probe/frames.hpp"

namespace httpmark {

class CaseInput {
  public:
    explicit CaseInput(int fd) : fd_(fd) {}

    // Its events come with this object's address.
    void watch(int epoll_fd);
    void on_event();

    // The next case. False: there is none yet, or none any more.
    bool next(ProbeCase* out);
    // Nothing will come any more: all was taken, or there is a complaint.
    bool is_over() const { return has_ended_ && (!complaint_.empty() || at_ == text_.size()); }
    // What is wrong with the input, in one line; empty: nothing.
    const std::string& complaint() const { return complaint_; }

  private:
    void ask_for_more();
    void read_some();

    int fd_;
    int epoll_fd_ = -1;
    std::string text_;
    std::size_t at_ = 0;  // up to here it is taken
    bool has_ended_ = false;
    bool is_pollable_ = false;
    bool is_armed_ = false;
    std::string complaint_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_CASE_INPUT_HPP_
