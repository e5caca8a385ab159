// Graphile Worker with the settings of its page on performance: two processes,
// 24 jobs at once in each, a local queue, results in batches.
import { fork } from 'node:child_process';
import { Logger, run, runMigrations, runOnce } from 'graphile-worker';
import pg from 'pg';
import { drive, insert, mostConnections, order, Pace, priorityOf, warmUp } from './driver.mjs';

const processes = order.single ? 1 : 2;
const many = { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const one = { concurrentJobs: 1, maxPoolSize: 2 };
const options = {
  preset: { worker: { connectionString: order.url, ...(order.single ? one : many) } },
  logger: new Logger(() => () => {}),
};

const newPool = (max) => new pg.Pool({ connectionString: order.url, max });

// The worker processes run this file too.
const isWorker = process.send !== undefined;

// work is what a worker process does: it runs the queued jobs and ends, or
// continues until it gets the signal to stop.
async function work({ began, lasting }) {
  const pace = new Pace(began);
  const taskList = { noop: () => pace.add() };
  let over;
  if (lasting) {
    const runner = await run({ ...options, taskList });
    over = runner.promise;
    process.send({ up: true });
    process.once('message', () => runner.stop());
  } else {
    over = runOnce({ ...options, taskList });
    if (order.limit) setTimeout(() => process.send({ counts: pace.counts }), order.limit * 1000).unref();
  }
  await over;
  process.send({ counts: pace.counts });
}

const message = (child) => new Promise((resolve, reject) => {
  child.once('message', resolve);
  child.once('exit', () => reject(new Error('a worker process has ended')));
});

// start launches worker processes, and returns when they have loaded their modules.
async function start() {
  const children = Array.from({ length: processes }, () => fork(import.meta.filename, [process.argv[2]]));
  await Promise.all(children.map(message));
  return children;
}

async function finish(children, pace, tell) {
  const reports = await Promise.all(children.map((child) => {
    const report = message(child);
    child.send(tell);
    return report;
  }));
  for (const { counts } of reports) pace.merge(counts);
  return pace.counts.reduce((sum, n) => sum + n, 0);
}

// adding returns a function that adds a number of jobs per call.
function adding(pool) {
  return (at, jobs) => {
    if (order.batch === 1) return pool.query({ name: 'one', text: "select graphile_worker.add_job('noop', '{}'::json)" });
    const specs = Array.from({ length: jobs }, (_, i) => ({ identifier: 'noop', payload: {}, priority: priorityOf(at + i) }));
    return pool.query({
      name: 'many',
      text: 'select count(*) from graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))',
      values: [JSON.stringify(specs)],
    });
  };
}

// emptied returns when no job is left.
async function emptied(pool) {
  while ((await pool.query('select from graphile_worker._private_jobs limit 1')).rowCount > 0) {
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
}

// Each verb prepares without being measured. It returns the function to measure,
// and how many jobs the warm-up took.
const verbs = {
  async migrate() {
    return [async () => { await runMigrations(options); return 0; }];
  },
  async fill() {
    const call = adding(newPool(2));
    order.batch = 10000;
    return [() => insert(call, { jobs: order.jobs, callers: 2, batch: order.batch })];
  },
  async insert() {
    const call = adding(newPool(Math.min(order.callers, mostConnections)));
    return [() => insert(call), await warmUp(call)];
  },
  async work() {
    const children = await start();
    return [(pace) => finish(children, pace, { began: pace.began })];
  },
  async life() {
    const children = await start();
    await Promise.all(children.map((child) => {
      const up = message(child);
      child.send({ lasting: true });
      return up;
    }));
    const pool = newPool(Math.min(order.callers, mostConnections));
    const call = adding(pool);
    const warmed = await warmUp(call);
    await emptied(pool);
    return [async (pace) => {
      await insert(call);
      await emptied(pool);
      pace.stop();
      return (await finish(children, pace, {})) - warmed;
    }, warmed];
  },
};

if (isWorker) {
  process.once('message', work);
  process.on('disconnect', () => process.exit(0));
  process.send({ loaded: true });
} else {
  await drive(...await verbs[order.do]());
}
