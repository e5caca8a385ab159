// A thread that ends the process where its event loop cannot: a handler that computes without end keeps timers
// from firing and standard input from being read, and must not outlive its lease or its orchestrator all the same.
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

// The places in the memory that both threads see, in nanoseconds of the clock that is the same for both: until when
// the earliest lease holds, and when the thread will look at that.
const untilAt = 0;
const lookAt = 1;
const never = 2n ** 62n;

// How often the thread looks, at least.
const beatMs = 1000;

// How much later than the event loop the thread acts, which says it better.
const slackMs = 50;

const now = () => process.hrtime.bigint();

/** The process's end of the thread. */
export class Watchdog {
  /** Until when the earliest lease holds, by the session's clock; Infinity for none. */
  #until = Infinity;
  #shared = new BigInt64Array(new SharedArrayBuffer(16)).fill(never);
  #worker;

  /**
   * @param {(why: string) => void} end is called when the process is to end, and has a moment left to do so
   */
  constructor(end) {
    this.#worker = new Worker(new URL(import.meta.url), {
      workerData: this.#shared, execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: 16 },
    });
    this.#worker.on('message', end);
    this.#worker.on('error', (error) => end(`its watchdog has failed: ${error.message}`));
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
    writeSync(2, `handler process ends: ${why}\n`);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}

if (!isMainThread && workerData instanceof BigInt64Array) watch(workerData);
