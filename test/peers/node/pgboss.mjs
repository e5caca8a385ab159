// pg-boss with large batches, as its documentation advises for throughput:
// jobs are inserted, fetched and completed a batch at a time. When jobs run one at
// a time, they are fetched and completed one by one, because its work() polls.
import { PgBoss } from 'pg-boss';
import { connections, drive, insert, order, Pace, priorityOf, warmUp } from './driver.mjs';

const queue = 'noop';
const { batchSize, loops } = order.single ? { batchSize: 1, loops: 1 } : order.set;

const boss = new PgBoss({ connectionString: order.url, max: loops + connections, schedule: false });
boss.on('error', (err) => { console.error(err); process.exit(1); });
await boss.start();

function call(at, jobs) {
  if (order.batch === 1) return boss.send(queue, {});
  return boss.insert(queue, Array.from({ length: jobs }, (_, i) => ({ data: {}, priority: priorityOf(at + i) })));
}

// work fetches and completes until so many jobs are done or the time is up.
async function work(pace, jobs = order.jobs) {
  const end = order.limit ? pace.began + order.limit * 1000 : Infinity;
  let done = 0;
  await Promise.all(Array.from({ length: loops }, async () => {
    while (done < jobs && Date.now() < end) {
      const fetched = await boss.fetch(queue, { batchSize });
      if (fetched.length === 0) {
        await new Promise((resolve) => { setTimeout(resolve, 5); });
        continue;
      }
      // Given the jobs, pg-boss also checks that the attempt is the one that was fetched.
      await boss.complete(queue, order.kept ? fetched : fetched.map(({ id }) => id));
      done += fetched.length;
      pace.add(fetched.length);
    }
  }));
  return done;
}

// Each verb prepares without being measured. It returns the function to measure,
// and how many jobs the warm-up took.
const verbs = {
  migrate: async () => [async () => { await boss.createQueue(queue, order.kept ? { heartbeatSeconds: 30 } : {}); return 0; }],
  fill: async () => [() => insert(call, { jobs: order.jobs, callers: 2, batch: (order.batch = 5000) })],
  insert: async () => [() => insert(call), await warmUp(call)],
  work: async () => [work],
  async life() {
    const warmed = await warmUp(call);
    await work(new Pace(), warmed);
    return [async (pace) => (await Promise.all([work(pace), insert(call)]))[0], warmed];
  },
};

await drive(...await verbs[order.do]());
