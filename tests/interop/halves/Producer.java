import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's own transactional producer: java -cp 'jars/*' Producer.java NAME_SERVER GROUP TOPIC CLIENT.
 *
 * A body says what its producer decides, `FIRST/ASKED/…`: when the half was sent, and when it is asked; `commit`,
 * `rollback`, or anything else for "not known". Each line of the input is a body to be sent to TOPIC. The output has
 * a line for each half that was sent (`sent`) and each back-check (`asked`), and `ready` when the broker knows it:
 *
 *   sent NUMBER POSITION KEY QUEUE FIRST BODY
 *   asked NUMBER POSITION KEY TIMES ANSWER BODY
 */
public class Producer {
    public static void main(String[] given) throws Exception {
        String topic = given[2];
        TransactionMQProducer producer = new TransactionMQProducer(given[1]);
        producer.setNamesrvAddr(given[0]);
        producer.setClientIP("127.0.0.1");
        producer.setInstanceName(given[3]);
        producer.setVipChannelEnabled(false);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(new ByItsBody());
        Answered answered = new Answered();
        producer.getDefaultMQProducerImpl().registerSendMessageHook(answered);
        producer.start();
        var client = producer.getDefaultMQProducerImpl().getmQClientFactory();
        while (!client.updateTopicRouteInfoFromNameServer(topic) && client.getTopicRouteTable().get(topic) == null) {
            Thread.sleep(50);
        }
        client.sendHeartbeatToAllBrokerWithLock();
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Message message = new Message(topic, "sent", line.getBytes(StandardCharsets.UTF_8));
            SendResult sent = producer.sendMessageInTransaction(message, null);
            say("sent", sent.getQueueOffset(), answered.position, sent.getMsgId(),
                sent.getMessageQueue().getQueueId(), line.split("/")[0], line);
        }
        producer.shutdown();
        System.exit(0);
    }

    /** The position in the last answer to a half: what a program is given does not have it. */
    static class Answered implements SendMessageHook {
        volatile long position;

        @Override
        public String hookName() {
            return "positions";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
        }

        @Override
        public void sendMessageAfter(SendMessageContext context) {
            if (context.getSendResult() != null) {
                String id = context.getSendResult().getOffsetMsgId();
                position = Long.parseLong(id.substring(id.length() - 16), 16);
            }
        }
    }

    /** Decides and answers what the body says. */
    static class ByItsBody implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object nothing) {
            return state(text(message).split("/")[0]);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt half) {
            String answer = text(half).split("/")[1];
            say("asked", half.getQueueOffset(), half.getCommitLogOffset(), half.getProperty("UNIQ_KEY"),
                half.getProperty("TRANSACTION_CHECK_TIMES"), answer, text(half));
            return state(answer);
        }
    }

    static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static LocalTransactionState state(String word) {
        return switch (word) {
            case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
            case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
            default -> LocalTransactionState.UNKNOW;
        };
    }

    static synchronized void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        System.out.println(line);
        System.out.flush();
    }
}
