import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.archive.format.gzip.zipnum.ZipNumCluster;
import org.archive.format.gzip.zipnum.ZipNumIndex;
import org.archive.format.gzip.zipnum.ZipNumParams;
import org.archive.util.iterator.CloseableIterator;
import org.springframework.beans.BeanWrapperImpl;

/**
 * What webarchive-commons reads from a cluster: /lines?start=KEY&end=KEY and the reader's properties.
 *
 * <p>The lines from start on that are less than end, or of all the cluster where both are empty. A reader
 * with a locFile is a ZipNumCluster, one without a ZipNumIndex; it is made at the first question.
 */
public final class Lines extends HttpServlet {
    private final Map<Map<String, String>, ZipNumIndex> readers = new HashMap<>();

    @Override
    protected synchronized void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        Map<String, String> properties = new TreeMap<>();
        request.getParameterMap().forEach((name, values) -> properties.put(name, values[0]));
        String start = properties.remove("start");
        String end = properties.remove("end");
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        try (CloseableIterator<String> lines =
                reader(properties).getCDXIterator(start, start, end, new ZipNumParams())) {
            while (lines.hasNext()) {
                answer.write((lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException | RuntimeException broken) {
            response.setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
            answer.write(broken.toString().getBytes(StandardCharsets.UTF_8));
        }
        response.getOutputStream().write(answer.toByteArray());
    }

    private ZipNumIndex reader(Map<String, String> properties) throws IOException {
        ZipNumIndex reader = readers.get(properties);
        if (reader == null) {
            reader = properties.containsKey("locFile") ? new ZipNumCluster() : new ZipNumIndex();
            new BeanWrapperImpl(reader).setPropertyValues(properties);
            reader.init();
            readers.put(properties, reader);
        }
        return reader;
    }
}
