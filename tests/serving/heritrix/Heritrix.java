import java.util.Map;
import org.archive.modules.CoreAttributeConstants;
import org.archive.modules.CrawlURI;
import org.archive.modules.recrawl.RecrawlAttributeConstants;
import org.archive.modules.recrawl.wbm.WbmPersistLoadProcessor;
import org.archive.net.UURIFactory;

/**
 * Heritrix' processor that asks a CDX server for the last capture of a URL: Heritrix QUERY-URL URL...
 *
 * <p>Prints a line for each URL: the digest and the milliseconds of the capture, or two hyphens. At the end, the numbers of URLs
 * with and without a capture, and of errors.
 */
public final class Heritrix {
    public static void main(String[] args) throws Exception {
        WbmPersistLoadProcessor processor = new WbmPersistLoadProcessor();
        processor.setQueryURL(args[0]);
        processor.start();
        for (int n = 1; n < args.length; n++) {
            CrawlURI uri = new CrawlURI(UURIFactory.getInstance(args[n]));
            processor.process(uri);
            Map<String, Object>[] history = uri.getFetchHistory();
            Map<String, Object> last = history == null ? null : history[0];
            Object digest = last == null ? "-" : last.get(RecrawlAttributeConstants.A_CONTENT_DIGEST);
            Object began = last == null ? "-" : last.get(CoreAttributeConstants.A_FETCH_BEGAN_TIME);
            System.out.println(digest + " " + began);
        }
        System.out.println(
                processor.getLoadedCount() + " " + processor.getMissedCount() + " " + processor.getErrorCount());
        System.exit(0);
    }
}
