import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;

/** Writes each line of a file as a key of a SequenceFile, as TotalOrderPartitioner wants it. */
public class WriteSplits {
    public static void main(String[] args) throws Exception {
        byte[] data = Files.readAllBytes(Path.of(args[0]));
        try (SequenceFile.Writer writer = SequenceFile.createWriter(
                new Configuration(false),
                SequenceFile.Writer.file(new org.apache.hadoop.fs.Path(args[1])),
                SequenceFile.Writer.keyClass(Text.class),
                SequenceFile.Writer.valueClass(NullWritable.class),
                SequenceFile.Writer.compression(SequenceFile.CompressionType.NONE))) {
            for (int start = 0, end = 0; end < data.length; end++) {
                if (data[end] == '\n') {
                    writer.append(new Text(Arrays.copyOfRange(data, start, end)), NullWritable.get());
                    start = end + 1;
                }
            }
        }
    }
}
