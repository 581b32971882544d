import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.util.ToolRunner;

/**
 * Commands of `hadoop fs` in one JVM, for each start takes seconds. A line of standard input is a command, its words are separated
 * by tabs. The answer is a line with status and lengths, then what the command wrote to stdout and to stderr.
 */
class Shell {
    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            int status = ToolRunner.run(new FsShell(new Configuration()), line.split("\t"));
            System.out.flush();
            System.err.flush();
            answers.printf("%d %d %d%n", status, out.size(), err.size());
            out.writeTo(answers);
            err.writeTo(answers);
            answers.flush();
        }
    }
}
