// A thread that ends the process when the event loop cannot. While a handler computes, no timer fires and nobody reads
// standard input, but the process must still not outlive a lease or the orchestrator.
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

// Indexes into the memory that both threads share: the end of the earliest lease, and when the thread looks next. Both
// are in nanoseconds, by a clock that both threads share.
const untilAt = 0;
const lookAt = 1;
const never = 2n ** 62n;

// The thread looks at least this often.
const beatMs = 1000;

// The thread acts this much later than the event loop, which can say more about the reason.
const slackMs = 50;

const now = () => process.hrtime.bigint();

/** The thread, as the event loop sees it. */
export class Watchdog {
  /** The end of the earliest lease, by the session's clock; Infinity for none. */
  #until = Infinity;
  #shared = new BigInt64Array(new SharedArrayBuffer(16)).fill(never);
  #worker;

  /** end(why) is called when the process must end, shortly before the thread kills it. */
  constructor(end) {
    this.#worker = new Worker(new URL(import.meta.url), {
      workerData: this.#shared, execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: 16 },
    });
    this.#worker.on('message', end);
    this.#worker.on('error', (error) => end(`its watchdog failed: ${error.message}`));
    this.#worker.unref();
  }

  get until() {
    return this.#until;
  }

  set until(ms) {
    this.#until = ms;
    const until = ms === Infinity ? never : BigInt(Math.ceil(ms * 1e6));
    Atomics.store(this.#shared, untilAt, until);
    if (until < Atomics.load(this.#shared, lookAt)) this.#worker.postMessage('sooner');
  }
}

function watch(shared) {
  let timer;
  const look = () => {
    clearTimeout(timer);
    const left = Number(Atomics.load(shared, untilAt) - now()) / 1e6 + slackMs;
    if (left <= 0) kill('a lease ran out while a handler keeps the event loop busy');
    const wait = Math.min(left, beatMs);
    Atomics.store(shared, lookAt, now() + BigInt(Math.ceil(wait * 1e6)));
    timer = setTimeout(look, Math.ceil(wait));
  };
  parentPort.on('message', look);
  look();

  const gone = () => {
    const why = 'the orchestrator is gone';
    parentPort.postMessage(why);
    setTimeout(() => kill(why), slackMs);
  };
  new Socket({ fd: 0, writable: false }).on('close', gone).on('error', () => {}).resume();
}

function kill(why) {
  try {
    writeSync(2, `plugin process ends: ${why}\n`);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}

if (!isMainThread && workerData instanceof BigInt64Array) watch(workerData);
