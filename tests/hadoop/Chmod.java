import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.AbstractFileSystem;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** Prints the default file system and the class of local files in the settings, and the rights that it gives a file. */
public class Chmod {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        AbstractFileSystem local = AbstractFileSystem.get(URI.create("file:///"), settings);
        System.out.println(settings.get("fs.defaultFS") + " " + local.getClass().getSimpleName());
        Files.createFile(Paths.get(arguments[0]));
        FileContext files = FileContext.getFileContext(URI.create("file:///"), settings);
        files.setPermission(new Path("file://" + arguments[0]), new FsPermission((short) 0550));
        System.out.println(PosixFilePermissions.toString(Files.getPosixFilePermissions(Paths.get(arguments[0]))));
    }
}
