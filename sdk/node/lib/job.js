import { Permanent, Reason, Stopped } from './errors.js';
import { submissionOf } from './followup.js';
import { encode } from './json.js';
import { code } from './limits.js';
import { consoleLog } from './log.js';

export class Job {
  #checkpoint;
  #reporter;
  #deadline;
  #reason;
  #controller;

  constructor({
    payload, rawPayload, id = '', type = '', tenant = 'default', attempt = 1, maxAttempts = 1, fence = 1,
    createdAt = new Date(), checkpoint, predecessors = [], timeoutMs = Infinity, traceparent = '', tracestate = '', baggage = '',
    reporter, // takes what the job reports: progress(bytes), checkpoint(bytes), submit(bytes), log
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
    this.submitted = [];
    this.predecessors = predecessors;
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

  submit(jobType, payload, options) {
    const encoded = encode(submissionOf(jobType, payload, options));
    if (this.#reporter === undefined) this.submitted.push(JSON.parse(encoded));
    else this.#reporter.submit(encoded);
  }

  resume(otherwise) {
    return this.#checkpoint === undefined ? otherwise : this.#checkpoint;
  }

  resultOf(name, otherwise) {
    const before = this.predecessors.find((p) => p.name === name);
    if (before === undefined) {
      throw new Permanent(`no job before this one has the name ${JSON.stringify(name)}`, { code: code.unknownPredecessor });
    }
    if (before.omitted) {
      throw new Permanent(`the result of ${name} was left out: all results together are too large`, { code: code.resultOmitted });
    }
    return !before.succeeded || before.result === undefined ? otherwise : before.result;
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
