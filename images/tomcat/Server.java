import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.util.ServerInfo;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.net.SSLHostConfigCertificate.Type;

/** Tomcat, embedded: one servlet for all paths, which repairs and refuses nothing. */
final class Server extends HttpServlet {
  private static final long serialVersionUID = 1;

  /** What a servlet is shown of a request: fields of one name together, and no trailer fields. */
  private record Exchange(HttpServletRequest of) implements Asked {
    @Override
    public String method() {
      return of.getMethod();
    }

    @Override
    public String path() {
      return of.getServletPath() + (of.getPathInfo() == null ? "" : of.getPathInfo());
    }

    @Override
    public String query() {
      return of.getQueryString();
    }

    @Override
    public byte[] content() throws IOException {
      return of.getInputStream().readAllBytes();
    }

    @Override
    public String target() {
      return of.getRequestURI() + (query() == null ? "" : "?" + query());
    }

    @Override
    public String version() {
      return of.getProtocol();
    }

    @Override
    public List<String[]> fields() {
      List<String[]> pairs = new ArrayList<>();
      for (String name : Collections.list(of.getHeaderNames())) {
        for (String value : Collections.list(of.getHeaders(name))) {
          pairs.add(new String[] {name, value});
        }
      }
      return pairs;
    }
  }

  @Override
  protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
    Answer answer = Answers.to(new Exchange(request)).waited();
    response.setStatus(answer.status());
    answer.fields().forEach(response::setHeader);
    if (answer.content() != null) {
      response.setContentLength(answer.content().length);
      response.getOutputStream().write(answer.content());
    }
  }

  private static Connector connector(Options options, int port) {
    Connector connector = new Connector("org.apache.coyote.http11.Http11NioProtocol");
    connector.setPort(port);
    connector.setProperty("address", options.address());
    connector.setProperty("acceptCount", "4096");
    connector.setProperty("maxKeepAliveRequests", "-1");
    if (options.timeoutSeconds() != null) {
      connector.setProperty("connectionTimeout", Integer.toString(options.timeoutSeconds() * 1000));
    }
    return connector;
  }

  private static Connector secure(Options options) {
    Connector connector = connector(options, options.tlsPort());
    connector.setScheme("https");
    connector.setSecure(true);
    connector.setProperty("SSLEnabled", "true");
    SSLHostConfig host = new SSLHostConfig();
    SSLHostConfigCertificate pair = new SSLHostConfigCertificate(host, Type.UNDEFINED);
    pair.setCertificateFile(options.words.get("--tls-cert"));
    pair.setCertificateKeyFile(options.words.get("--tls-key"));
    host.addCertificate(pair);
    connector.addSslHostConfig(host);
    return connector;
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "Tomcat " + ServerInfo.getServerNumber());
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(options.scratch());
    tomcat.setConnector(connector(options, options.port()));
    if (options.tlsPort() != null) {
      tomcat.getService().addConnector(secure(options));
    }
    Context context = tomcat.addContext("", options.scratch());
    Tomcat.addServlet(context, "all", new Server()).addMapping("/*");
    tomcat.start();
    tomcat.getServer().await();
  }
}
