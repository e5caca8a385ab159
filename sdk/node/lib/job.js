import { Reason, Stopped } from './errors.js';
import { encode } from './json.js';
import { consoleLog } from './log.js';

export class Job {
  #checkpoint;
  #reporter;
  #deadline;
  #reason;
  #controller;

  constructor({
    payload, rawPayload, id = '', type = '', tenant = 'default', attempt = 1, maxAttempts = 1, fence = 1,
    createdAt = new Date(), checkpoint, timeoutMs = Infinity, traceparent = '', tracestate = '', baggage = '',
    reporter, // takes what the job reports: progress(bytes), checkpoint(bytes), log
  } = {}) {
    this.payload = payload;
    this.rawPayload = rawPayload ?? Buffer.from(JSON.stringify(payload ?? null));
    this.id = id;
    this.type = type;
    this.tenant = tenant;
    this.attempt = attempt;
    this.maxAttempts = maxAttempts;
    this.fence = fence;
    this.createdAt = createdAt;
    this.traceparent = traceparent;
    this.tracestate = tracestate;
    this.baggage = baggage;
    this.#checkpoint = checkpoint;
    this.#deadline = performance.now() + timeoutMs;
    this.#reporter = reporter;
  }

  get log() {
    return this.#reporter?.log ?? consoleLog;
  }

  progress(value) {
    const encoded = encode(value);
    this.#reporter?.progress(encoded);
  }

  checkpoint(value) {
    const encoded = encode(value);
    this.#reporter?.checkpoint(encoded);
  }

  resume(otherwise) {
    return this.#checkpoint === undefined ? otherwise : this.#checkpoint;
  }

  /** Sets what resume returns. Only the SDK calls it. */
  restore(checkpoint) {
    this.#checkpoint = checkpoint;
  }

  get signal() {
    // Made when it is first asked for: most jobs never ask.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.canceled) this.#controller.abort(new Stopped(this.#reason));
    }
    return this.#controller.signal;
  }

  get canceled() {
    return this.#reason !== undefined;
  }

  get cancelReason() {
    return this.#reason;
  }

  get timeLeftMs() {
    return Math.max(this.#deadline - performance.now(), 0);
  }

  stop(reason = Reason.canceled) {
    if (this.canceled) return;
    this.#reason = reason;
    this.#controller?.abort(new Stopped(reason));
  }
}
