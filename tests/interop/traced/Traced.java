import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Clients that trace: java -cp 'jars/*' Traced.java NAME_SERVER CLIENT_LOG SENDS TRANSACTIONS PAUSE_MS [TRACE_TOPIC].
 *
 * A plain producer, a transactional one and a push consumer, all with message trace; what they really knew goes into
 * CLIENT_LOG, a line for each request. `mid` is printed at every tenth of the work.
 */
public class Traced {
    static PrintStream log;
    static final ThreadLocal<long[]> SENT = ThreadLocal.withInitial(() -> new long[2]);

    public static void main(String[] given) throws Exception {
        log = new PrintStream(new FileOutputStream(given[1], true), true, StandardCharsets.UTF_8);
        int sends = Integer.parseInt(given[2]), transactions = Integer.parseInt(given[3]);
        long pause = Long.parseLong(given[4]);
        String traces = given.length > 5 ? given[5] : null;
        DefaultMQProducer producer = new DefaultMQProducer("plain", true, traces);
        TransactionMQProducer halves = new TransactionMQProducer(null, "undecided", null, true, traces);
        for (DefaultMQProducer each : List.of(producer, halves)) {
            each.setNamesrvAddr(given[0]);
            each.setClientIP("127.0.0.1");
            each.setInstanceName(each.getProducerGroup());
            each.setVipChannelEnabled(false);
            each.setRetryTimesWhenSendFailed(0);
            each.setCompressMsgBodyOverHowmuch(2000);
            each.setHeartbeatBrokerInterval(1000);
            each.setPollNameServerInterval(1000);
            each.getDefaultMQProducerImpl().registerSendMessageHook(new Bodies());
        }
        halves.setTransactionListener(new Decider());
        producer.start();
        halves.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("readers", true, traces);
        consumer.setNamesrvAddr(given[0]);
        consumer.setClientIP("127.0.0.1");
        consumer.setInstanceName("readers");
        consumer.setVipChannelEnabled(false);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setPollNameServerInterval(1000);
        consumer.subscribe("orders", "*");
        consumer.subscribe("payments", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt first = messages.get(0);
            boolean again = first.getReconsumeTimes() == 0 && first.getBody().length % 23 == 0;
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(3000);
        System.out.println("ready");
        Thread one = new Thread(() -> plain(producer, sends, pause));
        Thread two = new Thread(() -> undecided(halves, transactions, pause * Math.max(1, sends / Math.max(transactions, 1))));
        one.start();
        two.start();
        one.join();
        two.join();
        System.out.println("sent");
        Thread.sleep(9000);
        consumer.shutdown();
        producer.shutdown();
        halves.shutdown();
        Thread.sleep(3000);
        System.out.println("done");
        System.exit(0);
    }

    static void plain(DefaultMQProducer producer, int sends, long pause) {
        Random random = new Random(7);
        for (int n = 0; n < sends; n++) {
            Message message = message(random, n);
            if (n % 10 == 9) {
                List<Message> batch = new ArrayList<>();
                for (int k = 0; k < 3; k++) {
                    batch.add(new Message("orders", "batch", ("b" + n + "/" + k).getBytes(StandardCharsets.UTF_8)));
                }
                batch(producer, batch);
            } else {
                if (n % 17 == 5) {
                    message.setDelayTimeLevel(1);
                }
                send(producer, message);
            }
            rest(pause);
            if (n % Math.max(sends / 10, 1) == 0) {
                System.out.println("mid " + n);
            }
        }
    }

    static Message message(Random random, int n) {
        String topic = n % 3 == 0 ? "payments" : "orders";
        int size = random.nextInt(20) == 0 ? 2500 : 5 + random.nextInt(150);
        Message message = new Message(topic, n % 4 == 0 ? "Tag-é" : null, ("m" + n + "-".repeat(size)).getBytes(StandardCharsets.UTF_8));
        if (n % 5 == 0) {
            message.setKeys("key" + n + " other" + n);
        }
        return message;
    }

    static void send(DefaultMQProducer producer, Message message) {
        SendResult sent = null;
        String result = "ok";
        try {
            sent = producer.send(message);
        } catch (MQBrokerException refused) {
            result = "fail";
        } catch (Exception silent) {
            result = "unknown";
        }
        String key = message.getProperty("UNIQ_KEY");
        if (key != null) {
            line("send", message.getTopic(), sent, key, result);
        }
        if (sent == null) {
            rest(300);
        }
    }

    static void batch(DefaultMQProducer producer, List<Message> batch) {
        SendResult sent = null;
        String result = "ok";
        try {
            sent = producer.send(batch);
        } catch (MQBrokerException refused) {
            result = "fail";
        } catch (Exception silent) {
            result = "unknown";
        }
        StringBuilder keys = new StringBuilder(), places = new StringBuilder();
        for (Message message : batch) {
            if (message.getProperty("UNIQ_KEY") == null) {
                return;
            }
            keys.append(keys.length() > 0 ? "," : "").append('"').append(message.getProperty("UNIQ_KEY")).append('"');
        }
        String at = "";
        if (sent != null) {
            for (String id : sent.getOffsetMsgId().split(",")) {
                places.append(places.length() > 0 ? "," : "").append(position(id));
            }
            at = ",\"qoff\":" + sent.getQueueOffset() + ",\"phys\":[" + places + "]";
        }
        say("{\"op\":\"batch\",\"topic\":\"orders\",\"queue\":" + (sent == null ? -1 : sent.getMessageQueue().getQueueId())
            + ",\"n\":" + batch.size() + ",\"uniqs\":[" + keys + "],\"result\":\"" + result + "\"" + at + "}");
    }

    static void undecided(TransactionMQProducer producer, int transactions, long pause) {
        for (int n = 0; n < transactions; n++) {
            String first = n % 10 < 6 ? "commit" : n % 10 < 8 ? "rollback" : "later";
            String asked = n % 10 == 8 ? "commit" : n % 20 == 9 ? "rollback" : "later";
            Message message = new Message("payments", "half", (first + "/" + asked + "/" + n).getBytes(StandardCharsets.UTF_8));
            try {
                producer.sendMessageInTransaction(message, null);
            } catch (Exception silent) {
                if (message.getProperty("UNIQ_KEY") != null) {
                    line("half", "payments", null, message.getProperty("UNIQ_KEY"), "unknown");
                }
                rest(300);
            }
            rest(pause);
        }
    }

    /** What a request carries, as it goes to the broker: compressed, if it is long. */
    static class Bodies implements SendMessageHook {
        @Override
        public String hookName() {
            return "bodies";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
            byte[] body = context.getMessage().getBody();
            CRC32 sum = new CRC32();
            sum.update(body);
            SENT.set(new long[] {body.length, sum.getValue()});
        }

        @Override
        public void sendMessageAfter(SendMessageContext context) {
            SendResult sent = context.getSendResult();
            if (sent != null && "true".equals(context.getMessage().getProperty("TRAN_MSG"))) {
                line("half", context.getMessage().getTopic(), sent, sent.getMsgId(), "ok");
                LAST.set(sent);
            }
        }
    }

    static final ThreadLocal<SendResult> LAST = new ThreadLocal<>();

    static class Decider implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object nothing) {
            SendResult half = LAST.get();
            String word = new String(message.getBody(), StandardCharsets.UTF_8).split("/")[0];
            end(half.getMsgId(), half.getQueueOffset(), position(half.getOffsetMsgId()), word, false);
            return state(word);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt half) {
            String key = half.getProperty("UNIQ_KEY");
            String word = new String(half.getBody(), StandardCharsets.UTF_8).split("/")[1];
            say("{\"op\":\"check\",\"uniq\":\"" + key + "\",\"half\":" + half.getQueueOffset() + ",\"phys\":"
                + half.getCommitLogOffset() + ",\"times\":\"" + half.getProperty("TRANSACTION_CHECK_TIMES") + "\"}");
            end(key, half.getQueueOffset(), half.getCommitLogOffset(), word, true);
            return state(word);
        }
    }

    static void end(String key, long number, long position, String word, boolean asked) {
        boolean decided = !word.equals("later");
        say("{\"op\":\"end\",\"uniq\":\"" + key + "\",\"half\":" + number + ",\"phys\":" + position + ",\"decision\":\""
            + (decided ? word : "unknown") + "\",\"from_check\":" + asked + ",\"result\":\"" + (decided ? "unknown" : "none") + "\"}");
    }

    static LocalTransactionState state(String word) {
        return switch (word) {
            case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
            case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
            default -> LocalTransactionState.UNKNOW;
        };
    }

    static void line(String op, String topic, SendResult sent, String key, String result) {
        String at = sent == null ? "" : ",\"qoff\":" + sent.getQueueOffset() + ",\"phys\":" + position(sent.getOffsetMsgId());
        int queue = sent == null ? -1 : sent.getMessageQueue().getQueueId();
        say("{\"op\":\"" + op + "\",\"topic\":\"" + topic + "\",\"queue\":" + queue + ",\"uniq\":\"" + key + "\",\"len\":" + SENT.get()[0]
            + ",\"crc\":" + SENT.get()[1] + ",\"result\":\"" + result + "\"" + at + "}");
    }

    static long position(String id) {
        return Long.parseLong(id.substring(id.length() - 16), 16);
    }

    static void rest(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException stop) {
            throw new IllegalStateException(stop);
        }
    }

    static synchronized void say(String line) {
        log.println(line);
    }
}
