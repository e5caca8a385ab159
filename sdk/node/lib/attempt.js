import { checkSize } from './caps.js';
import { Failure, Permanent, Reason } from './errors.js';
import { FollowUps } from './followup.js';
import { Job } from './job.js';
import { decode, encode } from './json.js';
import { code } from './limits.js';
import { logger } from './log.js';
import { succeeded, unsuccessful, verdictOf } from './outcome.js';
import { within } from './tracing.js';

// An attempt must stop when a sixth of its lease is left, or this many milliseconds if that is less.
const leaseMargin = 6;
const maxLeaseMarginMs = 5000;

/**
 * Runs a handler, stops it when its time is up, and reports the outcome. The lease is how long it may run without a
 * word from the orchestrator. Times are in milliseconds, by the clock that callers pass in.
 */
export class Attempt {
  /** What the attempt has reported and is not sent yet. The outbox uses it. */
  notes = {};
  ended = false;

  #start;
  #handler;
  #outbox;
  #caps;
  #job;
  #followUps = new FollowUps();
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

  /** Extends the lease to this long from now. */
  extend(leaseMs, now) {
    this.leaseUntil = now + leaseMs;
    this.#warnAt = this.leaseUntil - Math.min(leaseMs / leaseMargin, maxLeaseMarginMs);
  }

  /** When look first has something to do. */
  get due() {
    return Math.min(this.#warnAt, this.#timeoutAt);
  }

  /**
   * Stops the attempt when its time is up, and returns when to look again. It goes by the clock, so a lease also
   * runs out while the process is suspended.
   */
  look(now, expire) {
    if (now >= this.leaseUntil) expire(this);
    if (now >= this.#warnAt) this.lose();
    if (now >= this.#timeoutAt) this.#job.stop(Reason.timeout);
    const lease = now >= this.#warnAt ? this.leaseUntil : this.#warnAt;
    return now >= this.#timeoutAt ? lease : Math.min(lease, this.#timeoutAt);
  }

  /** Stops the attempt at the orchestrator's request. The first reason counts. */
  ask(reason) {
    this.#asked ??= reason;
    this.#job.stop(reason);
  }

  /** Stops the attempt because the connection to the orchestrator is lost. */
  lose() {
    this.#job.stop(Reason.leaseLost);
  }

  /** Runs the handler, and returns the outcome. It does not throw. */
  async perform() {
    let outcome;
    try {
      outcome = succeeded(await this.#run());
    } catch (error) {
      // The protocol has no field for the reason.
      const reason = verdictOf(error).canceled;
      if (reason) this.#job.log.info('the handler cancels its job', { reason });
      outcome = unsuccessful(error, this.#asked, this.#job.cancelReason);
    }
    outcome.handle = this.handle;
    const followUps = this.#followUps.end();
    if (outcome.succeeded) outcome.succeeded.followUps = followUps;
    return outcome;
  }

  async #run() {
    if (this.#handler === undefined) {
      // Not permanent: another process may serve the type.
      throw new Failure(`this plugin has no handler for ${this.#start.jobType}`, { code: code.unknownType });
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
      checkSize(encoded.length, this.#caps.result);
    } catch (error) {
      throw refuse(error, code.resultTooLarge);
    }
    return encoded;
  }

  #decode() {
    const { payload, checkpoint, predecessors = [] } = this.#start;
    try {
      this.#job.payload = payload?.length ? decode(payload) : null;
      if (checkpoint?.length) this.#job.restore(decode(checkpoint));
      this.#job.predecessors = predecessors.map(({ name, jobId, succeeded, result, omitted }) => ({
        name, id: jobId, succeeded, result: result?.length ? decode(result) : undefined, omitted,
      }));
    } catch (error) {
      throw new Failure(`payload: ${error.message}`, { code: code.badPayload, permanent: true, cause: error });
    }
  }

  // What the job reports.

  progress(encoded) {
    checkSize(encoded.length, this.#caps.progress);
    this.#outbox.note(this, 'progress', encoded);
  }

  submit(encoded) {
    this.#followUps.add(encoded, this.#caps);
  }

  checkpoint(encoded) {
    try {
      checkSize(encoded.length, this.#caps.checkpoint);
    } catch (error) {
      throw new Permanent(`checkpoint: ${error.message}`, { code: code.checkpointTooLarge, cause: error });
    }
    this.#outbox.note(this, 'checkpoint', encoded);
  }

  get log() {
    return this.#log ??= logger((record) => this.#outbox.log(this, record));
  }
}
