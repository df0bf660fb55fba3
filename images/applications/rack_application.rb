# frozen_string_literal: true

# What images/README.md asks of a server, as a Rack application: one for all servers in Ruby.
#
# It repairs nothing and refuses nothing. Rack shows fields joined and with changed names: what of a
# request it does not show as it came is null in the mirror.

require "cgi"
require "json"

module RackApplication
  HELLO = "Hello World!"
  BIG = ("a" * (1 << 20)).freeze
  SLOW_S = 0.5
  PLAIN = { "content-type" => "text/plain" }.freeze
  JSON_TYPE = { "content-type" => "application/json" }.freeze

  module_function

  def call(env)
    path = env["PATH_INFO"]
    return answer(200, HELLO, PLAIN) if path == "/early"

    content = env["rack.input"]&.read || ""
    case path
    when "/body" then answer(200, content, PLAIN)
    when "/echo" then answer(200, JSON.generate(parameters(env)), JSON_TYPE)
    when "/mirror" then answer(200, JSON.generate(mirror(env, content)), JSON_TYPE)
    else behave(path, env["REQUEST_METHOD"])
    end
  end

  def answer(status, content, fields)
    fields = fields.merge("content-length" => content.bytesize.to_s) unless [204, 304].include?(status)
    [status, fields.dup, content.empty? ? [] : [content]]
  end

  def behave(path, method)
    sleep SLOW_S if path == "/slow"
    case path
    when "/204" then return answer(204, "", {})
    when "/304" then return answer(304, "", { "etag" => '"httpmark"' })
    when "/redirect" then return answer(302, "", { "location" => "/hello" })
    when "/big" then return answer(200, BIG, PLAIN)
    when "/404" then return answer(404, "Not Found", PLAIN)
    when "/get-only"
      unless %w[GET HEAD].include?(method)
        return answer(405, "Method Not Allowed", PLAIN.merge("allow" => "GET, HEAD"))
      end
    end
    answer(200, HELLO, PLAIN)
  end

  def parameters(env)
    CGI.parse(env["QUERY_STRING"].to_s).transform_values(&:last)
  end

  def mirror(env, content)
    {
      "method" => octets(env["REQUEST_METHOD"]),
      "target" => octets(env["REQUEST_URI"]),
      "authority" => nil,
      "version" => octets(env["SERVER_PROTOCOL"]),
      "content" => octets(content),
      "fields" => nil,
      "trailers" => nil,
      "request_number" => nil
    }
  end

  def octets(value)
    value && [value].pack("m0")
  end
end
