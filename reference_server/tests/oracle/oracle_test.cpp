// The oracle by itself: the decisions, so that the two cannot be wrong together unseen.
#include "oracle.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "inputs.hpp"

namespace httpmark {
namespace {

using namespace std::string_literals;
using oracle::Subject;

const std::vector<std::pair<std::string, int>> kHeadDecisions = {
    // bytes, status or 0
    {with_host("GET / HTTP/1.1"), 0},
    {"\r\n" + with_host("GET / HTTP/1.1"), 0},
    {"\r\n\r\n" + with_host("GET / HTTP/1.1"), 400},
    {"\n" + with_host("GET / HTTP/1.1"), 400},
    {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {with_host("GET  / HTTP/1.1"), 400},
    {with_host("GET /  HTTP/1.1"), 400},
    {with_host("GET\t/ HTTP/1.1"), 400},
    {with_host("GET / HTTP/1.1 "), 400},
    {with_host("GET /"), 400},
    {with_host("BREW / HTTP/1.1"), 501},
    {with_host("get / HTTP/1.1"), 501},
    {with_host("TRACE / HTTP/1.1"), 501},
    {std::string(33, 'A'), 501},
    {std::string(32, 'A') + "@", 400},
    {"GET /" + std::string(8192, 'a'), 414},
    {with_host("GET http://b/ HTTP/1.1"), 0},
    {with_host("GET https://b/ HTTP/1.1"), 421},
    {with_host("GET http:/// HTTP/1.1"), 400},
    {with_host("GET http://u@b/ HTTP/1.1"), 400},
    {with_host("GET ftp://b/ HTTP/1.1"), 400},
    {with_host("GET b:80 HTTP/1.1"), 400},
    {with_host("CONNECT b:80 HTTP/1.1"), 501},
    {with_host("CONNECT b HTTP/1.1"), 400},
    {with_host("CONNECT b: HTTP/1.1"), 400},
    {with_host("OPTIONS * HTTP/1.1"), 0},
    {with_host("GET * HTTP/1.1"), 400},
    {with_host("GET //a/../%00 HTTP/1.1"), 0},
    {with_host("GET /%zz HTTP/1.1"), 400},
    {with_host("GET /%4 HTTP/1.1"), 400},
    {with_host("GET /a#b HTTP/1.1"), 400},
    {with_host("GET /?| HTTP/1.1"), 400},
    {with_host("GET /\x80 HTTP/1.1"), 400},
    {with_host("GET / HTTP/1.9"), 0},
    {with_host("GET / HTTP/2.0"), 505},
    {with_host("GET / HTTP/0.9"), 505},
    {with_host("GET / HTTP/1.10"), 400},
    {with_host("GET / http/1.1"), 400},
    {"PRI * HTTP/2.0\r\n", 505},
    {"GET / HTTP/1.0\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\nHost: @\r\n\r\n", 400},
    {with_host("GET / HTTP/1.1", "host: a\r\n"), 400},
    {"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8]:\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7::]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [::2:3:4:5:6:7:8]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [1::3:4:5:6:7:8]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8::]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [:1:2:3:4:5:6:7]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [12345::]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1.2.3.4]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:1.2.3.4]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [::1.2.3.256]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1.2.3.04]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [::1.2.3.4:1]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: [vF.~:]\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: [v.a]\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a:65535\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a:8x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: 1.2.3.999\r\n\r\n", 0},
    {with_host("GET / HTTP/1.1", "X : y\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X: y\r\n z\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X: \x01\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X: \x7f\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X:\t\xff\r\n"), 0},
    {with_host("GET / HTTP/1.1", ":y\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X\r\n"), 400},
    {with_host("GET / HTTP/1.1", "X\x80: y\r\n"), 400},
    {with_host("GET / HTTP/1.1", std::string(257, 'n')), 431},
    {with_host("GET / HTTP/1.1", "x:" + std::string(8193, 'v')), 431},
    {with_host("POST / HTTP/1.1", "Content-Length: 007\r\n"), 0},
    {with_host("POST / HTTP/1.1", "Content-Length: +7\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Content-Length:\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Content-Length: 7, 7\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Content-Length: 7\r\nContent-Length: 7\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Content-Length: 33554433\r\n"), 413},
    {with_host("POST / HTTP/1.1", "Content-Length: 99999999999999999999999\r\n"), 413},
    {with_host("BREW / HTTP/1.1", "Content-Length: 9223372036854775808\r\n"), 501},
    {with_host("GET https://b/ HTTP/1.1", "Content-Length: 9223372036854775808\r\n"), 421},
    {with_host("POST / HTTP/1.1", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n"), 0},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: , chunked,,\r\n"), 0},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n"), 501},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: gzip\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked, gzip\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked;a=b\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Transfer-Encoding:\r\n"), 400},
    {with_host("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n"), 400},
    {with_host("POST / HTTP/1.1", "Expect: 100-CONTINUE\r\n"), 0},
    {with_host("POST / HTTP/1.1", "Expect: 200-ok\r\n"), 417},
    {with_host("POST / HTTP/1.0", "Expect: 200-ok\r\n"), 0},
};

TEST(Oracle, KnowsTheDecisions) {
    for (const auto& [octets, status] : kHeadDecisions) {
        const oracle::Head head = oracle::read_head(octets, {});
        EXPECT_NE(head.verdict, oracle::Verdict::kNeedMore) << escaped(octets);
        EXPECT_EQ(head.status, status) << escaped(octets);
        EXPECT_EQ(head_difference(octets, strict(), Depth::kEveryPrefix), "") << escaped(octets);
    }
}

TEST(Oracle, KnowsTheDecisionsOnChunkedBodies) {
    const std::vector<std::pair<std::string, int>> decisions = {
        // bytes, status or 0
        {"0\r\n\r\n", 0},
        {"5;a=\"\\\"\r\n\r\n", 400},
        {"1;a=\"b\\\"\"\r\nx\r\n0\r\n\r\n", 0},
        {"1 ;a\r\nx\r\n0\r\n\r\n", 0},
        {"1 \r\nx\r\n0\r\n\r\n", 400},
        {"1;a \r\nx\r\n0\r\n\r\n", 400},
        {"1;\r\nx\r\n0\r\n\r\n", 400},
        {"1;a=\r\nx\r\n0\r\n\r\n", 400},
        {" 1\r\nx\r\n0\r\n\r\n", 400},
        {"0x1\r\nx\r\n0\r\n\r\n", 400},
        {"-1\r\nx\r\n0\r\n\r\n", 400},
        {"\r\n", 400},
        {"1\nx\r\n0\r\n\r\n", 400},
        {"1\r\nx\n0\r\n\r\n", 400},
        {"1\r\nxy\r\n0\r\n\r\n", 400},
        {"2000001\r\n", 413},
        {"fffffffffffffffffffffffff\r\n", 413},
        {std::string(1025, '0'), 400},
        {"0\r\nA: b\r\n\r\n", 0},
        {"0\r\nA : b\r\n\r\n", 400},
        {"0\r\n A: b\r\n\r\n", 400},
        {"0\r\nA: b\n\r\n", 400},
        {"0\r\nx: " + std::string(8192, 'v'), 431},
    };
    for (const auto& [octets, status] : decisions) {
        const oracle::Chunked body = oracle::read_chunked(octets, {});
        EXPECT_NE(body.verdict, oracle::Verdict::kNeedMore) << escaped(octets);
        EXPECT_EQ(body.status, status) << escaped(octets);
        EXPECT_EQ(chunked_difference(octets, strict(), Depth::kEveryPrefix), "") << escaped(octets);
    }
}

}  // namespace
}  // namespace httpmark
