import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.springframework.web.servlet.DispatcherServlet;

/**
 * OpenWayback's parts on a free port of loopback, which is printed: OpenWayback WEBAPP COLLECTION.XML.
 *
 * <p>/search/cdx is its CDX server, as WEBAPP/WEB-INF has it; /wayback/ replays COLLECTION.XML; /lines is what
 * its reader of clusters gives by itself. Ends when standard input does, so with whoever started it.
 */
public final class OpenWayback {
    public static void main(String[] args) throws Exception {
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        ServletContextHandler context = new ServletContextHandler(server, "/");
        context.setResourceBase(args[0]);
        context.addServlet(new ServletHolder("wayback-cdx-server", DispatcherServlet.class), "/search/*");
        context.addServlet(new ServletHolder(new Replay(args[1])), "/wayback/*");
        context.addServlet(new ServletHolder(new Lines()), "/lines");
        server.start();
        System.out.println(connector.getLocalPort());
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0); // the readers' own threads never end
    }
}
