// Graphile Worker as its page on performance advises: several processes, many jobs at once
// in each, a local queue, results in batches.
import { fork } from 'node:child_process';
import { Logger, run, runMigrations, runOnce } from 'graphile-worker';
import pg from 'pg';
import { connections, drive, insert, order, Pace, priorityOf, warmUp } from './driver.mjs';

const { concurrentJobs, completeJobBatchDelay, localQueue, processes: most } = order.set;
const processes = order.single ? 1 : most;
const many = {
  concurrentJobs, maxPoolSize: concurrentJobs + 1, localQueue: { size: localQueue }, completeJobBatchDelay, failJobBatchDelay: completeJobBatchDelay,
};
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

// Keeps a row of each finished job, which Graphile Worker deletes, in the transaction that
// deletes it.
const keepHistory = `
  create table history (id bigint primary key, task_id int, payload json, attempts smallint, created_at timestamptz,
    locked_at timestamptz, locked_by text, finished_at timestamptz not null default clock_timestamp());
  create function keep_history() returns trigger language plpgsql as $$ begin
    insert into history (id, task_id, payload, attempts, created_at, locked_at, locked_by)
      select id, task_id, payload, attempts, created_at, locked_at, locked_by from gone;
    return null;
  end $$;
  create trigger keep_history after delete on graphile_worker._private_jobs
    referencing old table as gone for each statement execute function keep_history()`;

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
    return [async () => {
      await runMigrations(options);
      if (order.kept) await newPool(1).query(keepHistory);
      return 0;
    }];
  },
  async fill() {
    const call = adding(newPool(2));
    order.batch = 10000;
    return [() => insert(call, { jobs: order.jobs, callers: 2, batch: order.batch })];
  },
  async insert() {
    const call = adding(newPool(connections));
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
    const pool = newPool(connections);
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
