import { Attempt } from './attempt.js';
import { Reason } from './errors.js';
import { Outbox } from './outbox.js';
import { flush } from './tracing.js';

const reasons = {
  REASON_TIMEOUT: Reason.timeout,
  REASON_LEASE_LOST: Reason.leaseLost,
  REASON_SHUTDOWN: Reason.shutdown,
};

// The longest that a timer takes.
const maxTimerMs = 2 ** 31 - 1;

// It goes on while the process is stopped, and is the same in every thread.
export const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;

/** One Work stream with all attempts on it. */
export class Session {
  /** Whether the stream has ended before it was drained. */
  isLost = false;

  #handlers;
  #call;
  #outbox;
  #caps;
  #exit;
  #watchdog;
  #attempts = new Map();
  #draining = false;
  #timer;
  #lookAt = Infinity;

  /**
   * Serves the stream until it is drained, every attempt has ended and everything is sent, or until it breaks.
   * Then nobody hears of outcomes any more and the orchestrator takes every attempt as crashed: all are told that
   * their leases are lost.
   *
   * @param {Map<string, import('./handler.js').Handler>} handlers
   * @param {import('@grpc/grpc-js').ServerDuplexStream<any, object>} call
   * @param {object} process
   * @param {() => void} process.drained is called when everything is sent
   * @param {(why: string) => never} process.exit ends the process at once
   * @param {import('./watchdog.js').Watchdog} process.watchdog
   * @param {{ progress: number, checkpoint: number, result: number }} caps see capsOf
   */
  constructor(handlers, call, { drained, exit, watchdog }, caps) {
    this.#handlers = handlers;
    this.#caps = caps;
    this.#call = call;
    this.#exit = exit;
    this.#watchdog = watchdog;
    this.#outbox = new Outbox((message) => this.#send(message), () => {
      if (!this.isDrained) return;
      call.end();
      drained();
    });
    call.on('data', (request) => this.#take(request));
    call.on('end', () => this.#drain());
    call.on('cancelled', () => this.#lose());
    call.on('error', () => this.#lose());
    call.on('close', () => this.#lose());
  }

  /** Whether no attempt is left and none will come. */
  get isDrained() {
    return this.#draining && this.#attempts.size === 0 && !this.isLost;
  }

  #send(message) {
    return new Promise((sent) => {
      if (this.isLost) sent();
      else this.#call.write(message, () => sent());
    });
  }

  #take({ starts, cancels, extension, drain }) {
    const now = clock();
    for (const start of starts) this.#begin(start, now);
    if (extension) {
      for (const handle of extension.handles) this.#attempts.get(handle)?.extend(extension.leaseMs ?? 0, now);
      this.#tellWatchdog();
    }
    for (const { handle, reason } of cancels) this.#attempts.get(handle)?.ask(reasons[reason] ?? Reason.canceled);
    if (drain) this.#drain();
  }

  async #begin(start, now) {
    if (this.isDrained || this.isLost) return; // the orchestrator has said that none would follow
    const attempt = new Attempt(start, this.#handlers.get(start.jobType), this.#outbox, this.#caps, now);
    this.#attempts.set(attempt.handle, attempt);
    if (attempt.leaseUntil < this.#watchdog.until) this.#watchdog.until = attempt.leaseUntil;
    this.#lookBy(attempt.due, now);
    const outcome = await attempt.perform();
    this.#outbox.outcome(attempt, outcome);
    this.#attempts.delete(attempt.handle);
    if (attempt.leaseUntil <= this.#watchdog.until) this.#tellWatchdog();
    this.#closeWhenDrained();
  }

  // Looks after every attempt's time. It goes on when the stream is lost: a handler that does not stop must not
  // outlive its lease.
  #look() {
    const now = clock();
    let due = Infinity;
    for (const attempt of this.#attempts.values()) {
      due = Math.min(due, attempt.look(now, ({ jobId }) => {
        this.#exit(`the lease of job ${jobId} ran out and its handler does not stop`);
      }));
    }
    this.#lookAt = Infinity;
    this.#lookBy(due, now);
  }

  #lookBy(due, now) {
    if (due >= this.#lookAt) return;
    this.#lookAt = due;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(Math.ceil(due - now), 0), maxTimerMs));
  }

  #tellWatchdog() {
    let until = Infinity;
    for (const attempt of this.#attempts.values()) until = Math.min(until, attempt.leaseUntil);
    this.#watchdog.until = until;
  }

  #drain() {
    this.#draining = true;
    this.#closeWhenDrained();
  }

  #closeWhenDrained() {
    if (this.isDrained) flush().then(() => this.#outbox.close());
  }

  #lose() {
    if (this.isDrained || this.isLost) return;
    this.isLost = true;
    for (const attempt of this.#attempts.values()) attempt.lose();
    this.#outbox.close();
  }
}
