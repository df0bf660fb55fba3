// A strict HTTP/1.1 server as a library. This is the only header that an application includes.
//
// An application is a Router::Builder full of routes. Each has a constant Answer, or a Handler: it
// reads a Request and writes one answer with a ResponseWriter. Server serves them from code, run()
// with the flags of the command line.
//
// What these headers declare can be relied on, but for what is private and what stands in a
// namespace of its own. Anything else that is installed below httpmark/detail is no part of it.
#pragma once

// Routes, requests, answers.
#include "app/content_reader.hpp"
#include "app/event_sender.hpp"
#include "app/hooks.hpp"
#include "app/later_answer.hpp"
#include "app/part_reader.hpp"
#include "app/request.hpp"
#include "app/request_content.hpp"
#include "app/router.hpp"
#include "app/waker.hpp"
#include "app/websocket.hpp"
#include "app/websocket_sender.hpp"
#include "http/answer_head.hpp"
#include "http/content_stream.hpp"
#include "http/error.hpp"
#include "http/response.hpp"
#include "http/uri.hpp"

// Files beneath a directory.
#include "app/static_files.hpp"

// Forms, cookies, JSON, media types, content codings.
#include "content/collected_form.hpp"
#include "content/content_coding.hpp"
#include "content/cookies.hpp"
#include "content/form.hpp"
#include "content/json_answer.hpp"
#include "content/json_writer.hpp"
#include "content/media_type.hpp"
#include "content/multipart.hpp"
#include "content/text_answer.hpp"

// The running server.
#include "command/run.hpp"
#include "limits.hpp"
#include "net/observer.hpp"
#include "server/server.hpp"
