import { Reason, Stopped } from './errors.js';
import { encode } from './json.js';
import { consoleLog } from './log.js';

/**
 * @typedef {object} Reporter
 * @property {(encoded: Buffer) => void} progress
 * @property {(encoded: Buffer) => void} checkpoint
 * @property {import('./log.js').Logger} log
 */

/**
 * One attempt at a job.
 *
 * One that a test makes by hand belongs to no attempt: what it reports goes nowhere, and its log to standard
 * error.
 */
export class Job {
  #checkpoint;
  #reporter;
  #deadline;
  #reason;
  #controller;

  /**
   * @param {object} [job]
   * @param {any} [job.payload]
   * @param {Buffer} [job.rawPayload]
   * @param {string} [job.id]
   * @param {string} [job.type]
   * @param {string} [job.tenant]
   * @param {number} [job.attempt]
   * @param {number} [job.maxAttempts]
   * @param {number} [job.fence]
   * @param {Date} [job.createdAt]
   * @param {any} [job.checkpoint] what resume returns
   * @param {number} [job.timeoutMs]
   * @param {string} [job.traceparent]
   * @param {string} [job.tracestate]
   * @param {string} [job.baggage]
   * @param {Reporter} [job.reporter] takes what the job reports
   */
  constructor({
    payload, rawPayload, id = '', type = '', tenant = 'default', attempt = 1, maxAttempts = 1, fence = 1,
    createdAt = new Date(), checkpoint, timeoutMs = Infinity, traceparent = '', tracestate = '', baggage = '', reporter,
  } = {}) {
    /** The payload, decoded from JSON. */
    this.payload = payload;
    /** The JSON to the letter as it was submitted. @type {Buffer} */
    this.rawPayload = rawPayload ?? Buffer.from(JSON.stringify(payload ?? null));
    /** The job's id, the same in every attempt: what to tell others for deduplication. */
    this.id = id;
    this.type = type;
    this.tenant = tenant;
    /** Counts from 1, up to maxAttempts. */
    this.attempt = attempt;
    this.maxAttempts = maxAttempts;
    /**
     * Grows with every attempt at the job. Whatever this attempt writes to can remember the highest one it has
     * seen and refuse lower ones, and so keep out an attempt that was given up but still runs somewhere.
     */
    this.fence = fence;
    /** When the job was submitted, by the database's clock. */
    this.createdAt = createdAt;
    /** The W3C trace context for requests of the handler's own; empty when the job is not traced. */
    this.traceparent = traceparent;
    this.tracestate = tracestate;
    /** The W3C baggage of the request that brought the job; empty for none. */
    this.baggage = baggage;
    this.#checkpoint = checkpoint;
    this.#deadline = performance.now() + timeoutMs;
    this.#reporter = reporter;
  }

  /**
   * A logger whose records appear in the orchestrator's log with the job's id: debug, info, warn and error
   * take a message and an object of attributes. It never waits.
   *
   * @type {import('./log.js').Logger}
   */
  get log() {
    return this.#reporter?.log ?? consoleLog;
  }

  /**
   * Shows the value, as JSON, to whoever looks at the job. Only the last one counts. It does not wait for the
   * value to be stored, and throws when the value has no JSON, is larger than the orchestrator takes (64 KiB, unless
   * it is configured otherwise), or comes after the attempt's end.
   *
   * @param {any} value
   */
  progress(value) {
    const encoded = encode(value);
    this.#reporter?.progress(encoded);
  }

  /**
   * Saves the value, as JSON, for the next attempt, which finds it with resume. Only the last one counts. It is
   * stored before this attempt's end is, and also when the process dies after the orchestrator has received it;
   * it does not wait for that. It throws as progress does; for a value that is too large (by default above 1 MiB) a
   * Permanent with the code checkpoint_too_large.
   *
   * @param {any} value
   */
  checkpoint(value) {
    const encoded = encode(value);
    this.#reporter?.checkpoint(encoded);
  }

  /**
   * The last checkpoint of an earlier attempt; the default when there is none.
   *
   * @template T
   * @param {T} [otherwise]
   * @returns {any | T}
   */
  resume(otherwise) {
    return this.#checkpoint === undefined ? otherwise : this.#checkpoint;
  }

  /** @package What resume is to return. */
  restore(checkpoint) {
    this.#checkpoint = checkpoint;
  }

  /**
   * Is aborted when the attempt is to stop, with a Stopped error that has the reason. Pass it on to whatever
   * waits: fetch, timers/promises, streams. A handler that goes on regardless is killed with its whole process.
   *
   * @type {AbortSignal}
   */
  get signal() {
    // Most jobs are done before anybody asks.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cancelled) this.#controller.abort(new Stopped(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Whether the attempt is to stop, for whatever reason. */
  get cancelled() {
    return this.#reason !== undefined;
  }

  /** Why the attempt is to stop, one of Reason; undefined while it is not. */
  get cancelReason() {
    return this.#reason;
  }

  /** Milliseconds until the attempt times out. */
  get timeLeftMs() {
    return Math.max(this.#deadline - performance.now(), 0);
  }

  /**
   * Asks the handler to stop, as the orchestrator does; for tests. The first reason counts.
   *
   * @param {string} [reason] one of Reason
   */
  stop(reason = Reason.canceled) {
    if (this.cancelled) return;
    this.#reason = reason;
    this.#controller?.abort(new Stopped(reason));
  }
}
