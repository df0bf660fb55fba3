import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.URLDecoder;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What images/README.md asks of a server: one for all servers in Java.
 *
 * <p>It repairs nothing and refuses nothing: what it tells is what the server understood.
 */
final class Answers {
  private static final byte[] HELLO = "Hello World!".getBytes(ISO_8859_1);
  private static final byte[] BIG = new byte[1 << 20];
  private static final int SLOW_MS = 500;
  private static final String TYPE = "Content-Type";
  private static final Map<String, String> PLAIN = Map.of(TYPE, "text/plain");
  private static final Map<String, String> JSON = Map.of(TYPE, "application/json");

  static {
    Arrays.fill(BIG, (byte) 'a');
  }

  private Answers() {}

  /** The answer to any path and method; the content is read before, but for /early. */
  static Answer to(Asked asked) throws IOException {
    String path = asked.path();
    if (isEarly(path)) {
      return new Answer(200, HELLO, PLAIN);
    }
    byte[] content = asked.content();
    return switch (path) {
      case "/body" -> new Answer(200, content, PLAIN);
      case "/echo" -> new Answer(200, echo(asked.query()).getBytes(UTF_8), JSON);
      case "/mirror" -> new Answer(200, mirror(asked, content).getBytes(ISO_8859_1), JSON);
      case "/slow" -> new Answer(200, HELLO, PLAIN, SLOW_MS);
      case "/204" -> new Answer(204, null, Map.of());
      case "/304" -> new Answer(304, null, Map.of("ETag", "\"httpmark\""));
      case "/redirect" -> new Answer(302, new byte[0], Map.of("Location", "/hello"));
      case "/big" -> new Answer(200, BIG, PLAIN);
      case "/404" -> new Answer(404, "Not Found".getBytes(ISO_8859_1), PLAIN);
      case "/get-only" -> getOnly(asked.method());
      default -> new Answer(200, HELLO, PLAIN);
    };
  }

  /** Whether the answer does not wait for the content. */
  static boolean isEarly(String path) {
    return path.equals("/early");
  }

  /** For a server that tells the handler of content that it cannot read, and leaves the answer to it. */
  static Answer badRequest() {
    return new Answer(400, "Bad Request".getBytes(ISO_8859_1), PLAIN);
  }

  private static Answer getOnly(String method) {
    if (method.equals("GET") || method.equals("HEAD")) {
      return new Answer(200, HELLO, PLAIN);
    }
    Map<String, String> fields = Map.of(TYPE, "text/plain", "Allow", "GET, HEAD");
    return new Answer(405, "Method Not Allowed".getBytes(ISO_8859_1), fields);
  }

  private static String echo(String query) {
    Map<String, String> parameters = new LinkedHashMap<>();
    for (String pair : query == null || query.isEmpty() ? new String[0] : query.split("&")) {
      int at = pair.indexOf('=');
      String name = decoded(at < 0 ? pair : pair.substring(0, at));
      parameters.putIfAbsent(name, at < 0 ? "" : decoded(pair.substring(at + 1)));
    }
    return parameters.entrySet().stream()
        .map(one -> quoted(one.getKey()) + ":" + quoted(one.getValue()))
        .collect(Collectors.joining(",", "{", "}"));
  }

  private static String decoded(String text) {
    try {
      return URLDecoder.decode(text, UTF_8);
    } catch (IllegalArgumentException error) {
      return text; // a percent sign that stands for itself
    }
  }

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (char one : text.toCharArray()) {
      if (one == '"' || one == '\\') {
        json.append('\\').append(one);
      } else if (one < ' ' || Character.isSurrogate(one)) {
        json.append(String.format("\\u%04x", (int) one));
      } else {
        json.append(one);
      }
    }
    return json.append('"').toString();
  }

  private static String mirror(Asked asked, byte[] content) {
    return "{\"method\":" + octets(asked.method())
        + ",\"target\":" + octets(asked.target())
        + ",\"authority\":" + octets(asked.authority())
        + ",\"version\":" + octets(asked.version())
        + ",\"content\":" + octets(content)
        + ",\"fields\":" + pairs(asked.fields())
        + ",\"trailers\":" + pairs(asked.trailers())
        + ",\"request_number\":" + asked.requestNumber() + "}";
  }

  private static String octets(byte[] value) {
    return '"' + Base64.getEncoder().encodeToString(value) + '"';
  }

  private static String octets(String value) {
    if (value == null) {
      return "null";
    }
    boolean isLatin = value.chars().allMatch(one -> one <= 0xff); // else the server has decoded it
    return octets(value.getBytes(isLatin ? ISO_8859_1 : UTF_8));
  }

  private static String pairs(List<String[]> fields) {
    if (fields == null) {
      return "null";
    }
    return fields.stream()
        .map(field -> "[" + octets(field[0]) + "," + octets(field[1]) + "]")
        .collect(Collectors.joining(",", "[", "]"));
  }
}
