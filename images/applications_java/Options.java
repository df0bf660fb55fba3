import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.logging.LogManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** The words of a server's manifest: each a name and a value, but for --version. */
final class Options {
  private static final List<String> NAMES =
      List.of("--address", "--port", "--workers", "--scratch", "--tls-port", "--tls-cert", "--tls-key", "--timeout-s");
  final Map<String, String> words = new HashMap<>();

  /** Reads the words; where the version is asked for, it is printed, and nothing else happens. */
  Options(String[] given, String version) {
    if (given.length == 1 && given[0].equals("--version")) {
      System.out.println(version);
      System.exit(0);
    }
    LogManager.getLogManager().reset(); // a line for each bad request would cost more than its answer
    for (int at = 0; at < given.length; at += 2) {
      if (!NAMES.contains(given[at]) || at + 1 == given.length) {
        System.err.println("not one of [NAME VALUE], or without a value: " + given[at] + "; names: " + NAMES);
        System.exit(2);
      }
      words.put(given[at], given[at + 1]);
    }
  }

  String address() {
    return words.getOrDefault("--address", "127.0.0.1");
  }

  int port() {
    return Integer.parseInt(words.getOrDefault("--port", "8080"));
  }

  int workers() {
    return Integer.parseInt(words.getOrDefault("--workers", "1"));
  }

  String scratch() {
    return words.getOrDefault("--scratch", System.getProperty("java.io.tmpdir"));
  }

  /** The timeout that suites ask for; null for the server's own. */
  Integer timeoutSeconds() {
    String given = words.get("--timeout-s");
    return given == null ? null : Integer.valueOf(given);
  }

  /** Where TLS is spoken; null if nowhere. */
  Integer tlsPort() {
    String given = words.get("--tls-port");
    return given == null ? null : Integer.valueOf(given);
  }

  /** The certificate and the key of the two PEM files, and the defaults of the JDK for all else. */
  SSLContext tls() throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream pem = Files.newInputStream(Path.of(words.get("--tls-cert")))) {
      Certificate[] chain =
          CertificateFactory.getInstance("X.509").generateCertificates(pem).toArray(new Certificate[0]);
      store.setKeyEntry("server", key(Path.of(words.get("--tls-key"))), new char[0], chain);
    }
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(store, new char[0]);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), null, null);
    return context;
  }

  private static PrivateKey key(Path path) throws IOException, GeneralSecurityException {
    String pem = Files.readString(path).replaceAll("-----[A-Z ]+-----", "");
    PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem));
    try {
      return KeyFactory.getInstance("EC").generatePrivate(spec);
    } catch (InvalidKeySpecException error) {
      return KeyFactory.getInstance("RSA").generatePrivate(spec);
    }
  }
}
