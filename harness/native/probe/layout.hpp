// The layout of the frames as JSON, for the test that holds the harness's numbers against it.
#ifndef HTTPMARK_NATIVE_PROBE_LAYOUT_HPP_
#define HTTPMARK_NATIVE_PROBE_LAYOUT_HPP_

#include <string>

namespace httpmark {

// One object, on one line:
//   steps, awaits, outcomes, ends, events   name -> number
//   flags              {step, case, exchange}: name -> bit
//   request_frame, step_record, await_record, exchange_frame, event_record
//                      {bytes, fields: [[name, "u8" or "u16" or "u32"], ...]}
//   limits             name -> number
std::string frame_layout_json();

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_LAYOUT_HPP_
