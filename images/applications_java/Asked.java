import java.io.IOException;
import java.util.List;

/**
 * One request, as its server understood it.
 *
 * <p>Text holds a byte in each character. Null stands for what the server does not compute; only the mirror reads that.
 */
interface Asked {
  String method();

  /** The path, without the query. */
  String path();

  /** What follows the question mark; null if there is none. */
  String query();

  /** The whole content, which may have to be waited for. */
  byte[] content() throws IOException;

  String target();

  String version();

  default String authority() {
    return null;
  }

  /** Pairs of a name and a value. */
  default List<String[]> fields() {
    return null;
  }

  /** Pairs, once the content was read. */
  default List<String[]> trailers() {
    return null;
  }

  default Integer requestNumber() {
    return null;
  }
}
