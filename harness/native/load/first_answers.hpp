// The first answer to each request of a plan: what all others are compared with.
#ifndef HTTPMARK_NATIVE_LOAD_FIRST_ANSWERS_HPP_
#define HTTPMARK_NATIVE_LOAD_FIRST_ANSWERS_HPP_

#include <vector>

#include "load/plan.hpp"
#include "load/report.hpp"
#include "load/response.hpp"

namespace httpmark {

// Sends each request once, each on a connection of its own, and acquaints its verifier with the
// answer. False when the target cannot be reached. What is wrong, there or with an answer, is in
// `failure` and in the errors of the report.
bool learn_first_answers(const LoadPlan& plan, std::vector<ResponseVerifier>* verifiers,
                         LoadReport* report);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_FIRST_ANSWERS_HPP_
