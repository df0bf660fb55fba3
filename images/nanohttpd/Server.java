import fi.iki.elonen.NanoHTTPD;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Properties;

/** NanoHTTPD: one handler for all paths, which repairs and refuses nothing. */
final class Server extends NanoHTTPD {
  private Server(Options options, int port) {
    super(options.address(), port);
  }

  /** What a handler is shown of a request. It cannot mirror: content goes through a charset, and chunks stay chunks. */
  private record Exchange(IHTTPSession of) implements Asked {
    @Override
    public String method() {
      return of.getMethod().name();
    }

    @Override
    public String path() {
      return of.getUri();
    }

    @Override
    public String query() {
      return of.getQueryParameterString();
    }

    @Override
    public byte[] content() throws IOException {
      try {
        of.parseBody(new HashMap<>()); // reads it off the connection, as its documentation says of POST
      } catch (ResponseException error) {
        throw new IOException(error);
      }
      return new byte[0];
    }

    @Override
    public String target() {
      return null;
    }

    @Override
    public String version() {
      return null;
    }
  }

  private record Status(int number) implements Response.IStatus {
    @Override
    public int getRequestStatus() {
      return number;
    }

    @Override
    public String getDescription() {
      Response.Status known = Response.Status.lookup(number);
      return known == null ? number + " " : known.getDescription();
    }
  }

  @Override
  public Response serve(IHTTPSession session) {
    Answer answer;
    try {
      answer = Answers.to(new Exchange(session)).waited();
    } catch (IOException error) {
      answer = Answers.badRequest();
    }
    byte[] content = answer.content() == null ? new byte[0] : answer.content();
    Response response =
        newFixedLengthResponse(
            new Status(answer.status()),
            answer.fields().get("Content-Type"),
            new ByteArrayInputStream(content),
            content.length);
    for (String name : List.of("ETag", "Location", "Allow")) { // it has written the type
      if (answer.fields().containsKey(name)) {
        response.addHeader(name, answer.fields().get(name));
      }
    }
    return response;
  }

  private static void listen(Options options, int port, boolean isSecure) throws Exception {
    Server server = new Server(options, port);
    if (isSecure) {
      server.makeSecure(options.tls().getServerSocketFactory(), null);
    }
    server.start(SOCKET_READ_TIMEOUT, false);
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "NanoHTTPD " + version());
    if (options.tlsPort() != null) {
      listen(options, options.tlsPort(), true);
    }
    listen(options, options.port(), false);
  }

  /** It tells it only in the properties of its jar. */
  private static String version() throws IOException {
    Properties properties = new Properties();
    try (InputStream file = NanoHTTPD.class.getResourceAsStream("/META-INF/maven/org.nanohttpd/nanohttpd/pom.properties")) {
      properties.load(file);
    }
    return properties.getProperty("version");
  }
}
