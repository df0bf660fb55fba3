// What the server and the oracle each make of an input, and where they differ.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "limits.hpp"
#include "oracle.hpp"
#include "scan/scan.hpp"

namespace httpmark {

struct Tally {
    std::uint64_t inputs = 0;
    std::uint64_t verdicts = 0;  // of the server, each compared with the oracle's
    std::uint64_t accepted = 0;
    std::uint64_t rejected = 0;
    std::uint64_t undecided = 0;
    std::set<std::string> reasons;  // all that the server gave
};
extern Tally tally;

struct Setting {
    const char* name;
    Strictness strictness;
    bool tls;
    Limits limits;
};
const std::vector<Setting>& settings();
const Setting& strict();
oracle::Options options_of(const Setting& setting);
std::vector<const ScanKernel*> kernels();

enum class Depth { kWhole, kOctetByOctet, kEveryPrefix };
// Nothing when the server agrees with the oracle; else where and how not.
std::string head_difference(std::string_view input, const Setting& setting, Depth depth);
std::string chunked_difference(std::string_view input, const Setting& setting, Depth depth);

using Compare = std::string (*)(std::string_view, const Setting&, Depth);
// Reports a disagreement. False once the test at hand has seen so many that more would not help.
bool check(Compare compare, const std::string& input, const Setting& setting, Depth depth);
std::string escaped(std::string_view octets);

}  // namespace httpmark
