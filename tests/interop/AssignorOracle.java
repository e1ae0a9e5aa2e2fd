import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Assigns groups by Apache Kafka's sticky assignors.
 *
 * A line of the input is a group: the assignor, then its topics ("a=3,b=2"), then a field for each
 * member ("name;topics a,b;owned a:0,b:1;generation"), fields separated by blanks. A line of the
 * output is what each member gets ("name;a:0,a:1"), or "failed" where Kafka throws: it does not
 * expect members that own partitions which do not exist, or of older generations.
 */
public class AssignorOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(assignOrFail(line.split(" ")));
        }
    }

    private static String assignOrFail(String[] fields) {
        try {
            return assign(fields);
        } catch (IllegalStateException | NullPointerException error) {
            return "failed";
        }
    }

    @SuppressWarnings("removal")
    private static String assign(String[] fields) {
        boolean cooperative = fields[0].equals("cooperative-sticky");
        AbstractStickyAssignor assignor =
            cooperative ? new CooperativeStickyAssignor() : new StickyAssignor();
        Map<String, Integer> topics = new HashMap<>();
        for (String topic : parts(fields[1])) {
            topics.put(topic.split("=")[0], Integer.parseInt(topic.split("=")[1]));
        }
        Map<String, Subscription> members = new HashMap<>();
        for (int i = 2; i < fields.length; i++) {
            String[] member = fields[i].split(";", -1);
            int generation = Integer.parseInt(member[3]);
            List<TopicPartition> owned = new ArrayList<>();
            for (String one : parts(member[2])) {
                String[] names = one.split(":");
                owned.add(new TopicPartition(names[0], Integer.parseInt(names[1])));
            }
            ByteBuffer userData = null;
            if (!cooperative) {
                StickyAssignor own = new StickyAssignor();
                own.onAssignment(
                    new Assignment(owned),
                    new ConsumerGroupMetadata("g", generation, member[0], Optional.empty()));
                userData = own.subscriptionUserData(java.util.Set.of());
            }
            members.put(member[0],
                new Subscription(parts(member[1]), userData, owned, generation, Optional.empty()));
        }
        StringBuilder out = new StringBuilder();
        new TreeMap<>(assignor.assign(topics, members)).forEach((name, partitions) -> {
            List<String> found = new ArrayList<>();
            partitions.forEach(one -> found.add(one.topic() + ":" + one.partition()));
            out.append(name).append(";").append(String.join(",", found)).append(" ");
        });
        return out.toString().trim();
    }

    private static List<String> parts(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }
}
