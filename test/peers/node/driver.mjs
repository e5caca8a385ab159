// A driver takes one order (order.go) and reports what it did.
import { createInterface } from 'node:readline';

// As in order.go, in milliseconds.
const beat = 50;
const warmUpWithin = 1000;

export const order = JSON.parse(process.argv[2]);

// How many connections those who insert share.
export const connections = Math.min(order.callers ?? 0, order.set.connections);

// drive reports that it is ready and how many jobs the warm-up took, waits for the start signal, and acts.
// act returns the number of finished jobs.
export async function drive(act, warmed = 0) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  say({ ready: true, done: warmed });
  if ((await lines.next()).done) process.exit(1);
  const pace = new Pace();
  const done = await act(pace);
  pace.stop();
  say({ done, seconds: pace.seconds, pace: pace.counts });
  await lines.next();
  process.exit(0);
}

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');

// Pace counts the jobs of each beat. Processes whose counts are added begin at
// the same time of day.
export class Pace {
  counts = [];
  #clock = performance.now();
  constructor(began = Date.now()) { this.began = began; }
  add(jobs = 1, at = Math.floor((Date.now() - this.began) / beat)) {
    while (this.counts.length <= at) this.counts.push(0);
    this.counts[at] += jobs;
  }
  // stop ends the measured time. Only the first call counts.
  stop() { this.seconds ??= (performance.now() - this.#clock) / 1000; }
  merge(counts) { counts.forEach((jobs, at) => this.add(jobs, at)); }
}

// insert runs as many calls at once as there are callers. Each gets the index of
// its first job and the number of jobs.
export async function insert(call, { jobs, callers, batch } = order) {
  let next = 0;
  await Promise.all(Array.from({ length: callers }, async () => {
    for (let at; (at = next) < jobs;) {
      next += batch;
      await call(at, Math.min(batch, jobs - at));
    }
  }));
  return jobs;
}

// warmUp inserts jobs for a while and returns how many.
export async function warmUp(call) {
  let warmed = 0;
  for (const end = performance.now() + warmUpWithin; performance.now() < end && warmed < order.jobs;) {
    warmed += await insert(call, { ...order, jobs: order.callers * order.batch });
  }
  return warmed;
}

export const priorityOf = (i) => (order.priorities > 1 ? i % order.priorities : 0);
