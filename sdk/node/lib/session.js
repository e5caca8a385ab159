import { Attempt } from './attempt.js';
import { Reason } from './errors.js';
import { Outbox } from './outbox.js';
import { flush } from './tracing.js';

const reasons = {
  REASON_TIMEOUT: Reason.timeout,
  REASON_LEASE_LOST: Reason.leaseLost,
  REASON_SHUTDOWN: Reason.shutdown,
};

// The longest delay of a timer.
const maxTimerMs = 2 ** 31 - 1;

// It continues while the process is suspended, and is the same in every thread.
export const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;

/** The Work stream and its attempts. */
export class Session {
  /** Whether the stream broke before the session was drained. */
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
   * Serves the stream until it is drained or breaks. After a drain, it first sends every outcome. When the stream breaks,
   * the orchestrator counts every attempt as crashed, so all attempts stop with a lost lease.
   *
   * Of the process, drained() is called when everything is sent, and exit(why) ends it at once.
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

  /** Whether no attempt runs and none will start. */
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
    if (this.isDrained || this.isLost) return; // the orchestrator said that no start would follow
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

  // Stops attempts when their time is up. It continues after the stream broke: a handler that does not stop must not run
  // longer than its lease.
  #look() {
    const now = clock();
    let due = Infinity;
    for (const attempt of this.#attempts.values()) {
      due = Math.min(due, attempt.look(now, ({ jobId }) => {
        this.#exit(`the lease of job ${jobId} ran out and its handler has not stopped`);
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
