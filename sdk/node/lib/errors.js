import { checkWait } from './check.js';

/**
 * Why an attempt is to stop.
 *
 * - `canceled`: a client has canceled the job.
 * - `timeout`: the attempt's time is up.
 * - `lease_lost`: the orchestrator can no longer prove that it owns the job, or is not heard of. Touch nothing
 *   more: another attempt may start at any moment.
 * - `shutdown`: the orchestrator shuts down and gives the job back. Another attempt will start from the last
 *   checkpoint.
 *
 * @readonly
 * @enum {string}
 */
export const Reason = Object.freeze({
  canceled: 'canceled',
  timeout: 'timeout',
  leaseLost: 'lease_lost',
  shutdown: 'shutdown',
});

/** The reason of a job's signal: its attempt is to stop. Let it pass. */
export class Stopped extends Error {
  name = 'Stopped';

  /** @param {string} reason one of Reason */
  constructor(reason) {
    super(`stopped: ${reason}`);
    this.reason = reason;
  }
}

/**
 * A failure with a wish. Any other error fails the attempt, too, and is tried again by the retry policy; this
 * one can say how.
 */
export class Failure extends Error {
  name = 'Failure';

  /**
   * @param {string} [message]
   * @param {object} [wish]
   * @param {string} [wish.code] a short, stable name that is stored with the attempt
   * @param {boolean} [wish.permanent] no further attempt can succeed: the job is dead-lettered
   * @param {number} [wish.retryAfterMs] the wait before the next attempt, if one is left, in place of the policy's
   * @param {unknown} [wish.cause] as of Error
   */
  constructor(message = '', { code = '', permanent = false, retryAfterMs, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.permanent = permanent;
    this.retryAfterMs = retryAfterMs === undefined ? undefined : checkWait(retryAfterMs);
  }
}

/** No further attempt can succeed: the job is dead-lettered. */
export class Permanent extends Failure {
  name = 'Permanent';

  /**
   * @param {string} [message]
   * @param {{ code?: string, cause?: unknown }} [options]
   */
  constructor(message, { code, cause } = {}) {
    super(message, { code, cause, permanent: true });
  }
}

/** The next attempt, if one is left, waits so long in place of the retry policy's backoff. */
export class RetryAfter extends Failure {
  name = 'RetryAfter';

  /**
   * @param {number} delayMs
   * @param {string} [message]
   * @param {{ code?: string, cause?: unknown }} [options]
   */
  constructor(delayMs, message, { code, cause } = {}) {
    super(message, { code, cause, retryAfterMs: delayMs });
  }
}

/** Ends the attempt without charging it to the job, which is attempted again after the delay. */
export class Snooze extends Error {
  name = 'Snooze';

  /** @param {number} delayMs */
  constructor(delayMs) {
    super(`snooze for ${delayMs} ms`);
    this.retryAfterMs = checkWait(delayMs);
  }
}

/** Ends the job as canceled, by its handler's own decision. The reason goes to the log. */
export class Cancel extends Error {
  name = 'Cancel';

  /** @param {string} [reason] */
  constructor(reason = '') {
    super(reason || 'canceled by the handler');
    this.reason = reason;
  }
}
