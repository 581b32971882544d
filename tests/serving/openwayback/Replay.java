import java.io.IOException;
import java.util.List;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.archive.wayback.archivalurl.ArchivalUrlRequestParser;
import org.archive.wayback.archivalurl.ArchivalUrlResultURIConverter;
import org.archive.wayback.replay.DefaultClosestResultSelector;
import org.archive.wayback.replay.IdentityHttpHeaderProcessor;
import org.archive.wayback.replay.SelectorReplayDispatcher;
import org.archive.wayback.replay.TransparentReplayRenderer;
import org.archive.wayback.replay.selector.AlwaysMatchSelector;
import org.archive.wayback.util.webapp.RequestMapper;
import org.archive.wayback.webapp.AccessPoint;
import org.archive.wayback.webapp.WaybackCollection;
import org.springframework.context.support.FileSystemXmlApplicationContext;

/** An access point of OpenWayback on the collection of a Spring file: /wayback/TIMESTAMPid_/URL, not rewritten. */
public final class Replay extends HttpServlet {
    private final AccessPoint accessPoint = new AccessPoint();

    Replay(String springFile) {
        AlwaysMatchSelector all = new AlwaysMatchSelector();
        all.setRenderer(new TransparentReplayRenderer(new IdentityHttpHeaderProcessor()));
        SelectorReplayDispatcher replay = new SelectorReplayDispatcher();
        replay.setSelectors(List.of(all));
        replay.setClosestSelector(new DefaultClosestResultSelector());
        ArchivalUrlRequestParser parser = new ArchivalUrlRequestParser();
        parser.init();
        ArchivalUrlResultURIConverter addresses = new ArchivalUrlResultURIConverter();
        addresses.setReplayURIPrefix("/wayback/");
        accessPoint.setReplay(replay);
        accessPoint.setParser(parser);
        accessPoint.setUriConverter(addresses);
        accessPoint.setReplayPrefix("/wayback/");
        accessPoint.setCollection(
                new FileSystemXmlApplicationContext("file:" + springFile).getBean(WaybackCollection.class));
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
        accessPoint.setServletContext(getServletContext());
        request.setAttribute(RequestMapper.REQUEST_CONTEXT_PREFIX, "/wayback/");
        if (!accessPoint.handleRequest(request, response)) {
            response.sendError(HttpServletResponse.SC_NOT_FOUND);
        }
    }
}
