import { checkSize } from './caps.js';
import { Failure, Permanent, Reason } from './errors.js';
import { Job } from './job.js';
import { decode, encode } from './json.js';
import { code } from './limits.js';
import { logger } from './log.js';
import { succeeded, unsuccessful, verdictOf } from './outcome.js';
import { within } from './tracing.js';

// How much of a lease is left when its attempt is told to stop: a sixth, at most so many milliseconds.
const leaseMargin = 6;
const maxLeaseMarginMs = 5000;

/**
 * One start on the stream. It runs a handler to its end, whichever way it ends, and keeps watch over its time:
 * the lease is how long it may go on without hearing from the orchestrator. Times are those of the clock that is
 * handed in, in milliseconds.
 */
export class Attempt {
  /** The outbox's: what it has last reported and is not sent yet. */
  notes = {};
  ended = false;

  #start;
  #handler;
  #outbox;
  #caps;
  #job;
  #asked;
  #log;
  #warnAt;
  #timeoutAt;

  constructor(start, handler, outbox, caps, now) {
    this.handle = start.handle;
    this.#start = start;
    this.#handler = handler;
    this.#outbox = outbox;
    this.#caps = caps;
    const timeoutMs = start.timeoutMs ?? 0;
    this.#timeoutAt = now + timeoutMs;
    this.extend(start.leaseMs ?? 0, now);
    this.#job = new Job({
      id: start.jobId, type: start.jobType, tenant: start.tenant, attempt: start.attempt,
      maxAttempts: start.maxAttempts, fence: start.fence, createdAt: new Date(start.createdAt ?? NaN), timeoutMs,
      rawPayload: start.payload ?? Buffer.alloc(0), traceparent: start.traceparent, tracestate: start.tracestate,
      baggage: start.baggage, reporter: this,
    });
  }

  get jobId() {
    return this.#start.jobId;
  }

  /** Says that the lease is proven for so long from now. */
  extend(leaseMs, now) {
    this.leaseUntil = now + leaseMs;
    this.#warnAt = this.leaseUntil - Math.min(leaseMs / leaseMargin, maxLeaseMarginMs);
  }

  /** When look has something to do for the first time. */
  get due() {
    return Math.min(this.#warnAt, this.#timeoutAt);
  }

  /**
   * Stops the attempt when its time is up, and returns when to look again. It compares with the clock: in a
   * process that was stopped meanwhile, a lease has run out at once.
   */
  look(now, expire) {
    if (now >= this.leaseUntil) expire(this);
    if (now >= this.#warnAt) this.lose();
    if (now >= this.#timeoutAt) this.#job.stop(Reason.timeout);
    const lease = now >= this.#warnAt ? this.leaseUntil : this.#warnAt;
    return now >= this.#timeoutAt ? lease : Math.min(lease, this.#timeoutAt);
  }

  /** Stops it because the orchestrator wants it so. The first reason counts. */
  ask(reason) {
    this.#asked ??= reason;
    this.#job.stop(reason);
  }

  /** Stops it because the orchestrator is not heard of. */
  lose() {
    this.#job.stop(Reason.leaseLost);
  }

  /** Runs the handler, and returns the outcome. It does not throw. */
  async perform() {
    let outcome;
    try {
      outcome = succeeded(await this.#run());
    } catch (error) {
      // The outcome has no place for the reason.
      const reason = verdictOf(error).canceled;
      if (reason) this.#job.log.info('the handler cancels its job', { reason });
      outcome = unsuccessful(error, this.#asked, this.#job.cancelReason);
    }
    outcome.handle = this.handle;
    return outcome;
  }

  async #run() {
    if (this.#handler === undefined) {
      // Not permanent: another process may well serve the type.
      throw new Failure(`this process has no handler for ${this.#start.jobType}`, { code: code.unknownType });
    }
    this.#decode();
    const { traceparent, tracestate } = this.#job;
    const result = await within(traceparent, tracestate, () => this.#handler.run(this.#job));
    if (result === undefined) return undefined;
    const refuse = (error, name) => new Permanent(`result: ${error.message}`, { code: name, cause: error });
    let encoded;
    try {
      encoded = encode(result);
    } catch (error) {
      throw refuse(error, code.badResult);
    }
    try {
      checkSize(encoded, this.#caps.result);
    } catch (error) {
      throw refuse(error, code.resultTooLarge);
    }
    return encoded;
  }

  #decode() {
    const { payload, checkpoint } = this.#start;
    try {
      this.#job.payload = payload?.length ? decode(payload) : null;
      if (checkpoint?.length) this.#job.restore(decode(checkpoint));
    } catch (error) {
      throw new Failure(`payload: ${error.message}`, { code: code.badPayload, permanent: true, cause: error });
    }
  }

  // What the job reports.

  progress(encoded) {
    checkSize(encoded, this.#caps.progress);
    this.#outbox.note(this, 'progress', encoded);
  }

  checkpoint(encoded) {
    try {
      checkSize(encoded, this.#caps.checkpoint);
    } catch (error) {
      throw new Permanent(`checkpoint: ${error.message}`, { code: code.checkpointTooLarge, cause: error });
    }
    this.#outbox.note(this, 'checkpoint', encoded);
  }

  get log() {
    return this.#log ??= logger((record) => this.#outbox.log(this, record));
  }
}
