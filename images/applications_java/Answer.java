import java.util.Map;

/**
 * What a server has to send, without the fields that it writes itself.
 *
 * @param content null for an answer without any, as 204; then there is no Content-Length either
 * @param afterMs how long to wait before
 */
record Answer(int status, byte[] content, Map<String, String> fields, int afterMs) {
  Answer(int status, byte[] content, Map<String, String> fields) {
    this(status, content, fields, 0);
  }

  /** For a server with a thread for each request. */
  Answer waited() {
    try {
      Thread.sleep(afterMs);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    return this;
  }
}
