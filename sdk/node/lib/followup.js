import { checkSize } from './caps.js';
import { checkWait } from './check.js';
import { Permanent } from './errors.js';
import { code } from './limits.js';

const duration = (ms) => (ms === undefined ? undefined : `${checkWait(ms)}ms`);

function instant(what, date) {
  if (date === undefined) return undefined;
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) throw new TypeError(`${what} ${date} is not a Date`);
  return date.toISOString();
}

/** The body of POST /jobs for a job that a handler submits. What is undefined is left out. */
export function submissionOf(jobType, payload, {
  key, priority, runAt, delayMs, hold, maxAttempts, timeoutMs, tags, concurrencyKey, concurrencyLimit, onConflict, fairnessKey,
  expiresAt, ttlMs, uniqueForMs, uniqueWhileOpen, uniqueBy, callbackUrl, ...unknown
} = {}) {
  if (typeof jobType !== 'string' || jobType === '') throw new TypeError(`${JSON.stringify(jobType)} is no job type`);
  if (Object.keys(unknown).length > 0) throw new TypeError(`the option ${Object.keys(unknown)[0]} is unknown`);
  return {
    jobType, payload, idempotencyKey: key, priority, runAt: instant('runAt', runAt), delay: duration(delayMs), hold, maxAttempts,
    timeout: duration(timeoutMs), tags, concurrencyKey, concurrencyLimit, onConflict, fairnessKey,
    expiresAt: instant('expiresAt', expiresAt), ttl: duration(ttlMs), uniqueFor: duration(uniqueForMs),
    uniqueWhile: uniqueWhileOpen ? 'open' : undefined, uniqueBy, callbackUrl,
  };
}

/** What an attempt has submitted. */
export class FollowUps {
  #all = [];
  #bytes = 0;
  #ended = false;

  add(encoded, { followUps, followUpBytes }) {
    if (this.#ended) throw new Error('the attempt has ended');
    if (followUps === 0) throw new Error('the orchestrator is too old to accept follow-ups');
    const count = this.#all.length + 1;
    const bytes = this.#bytes + encoded.length;
    try {
      if (count > followUps) throw new RangeError(`${count} follow-ups are more than ${followUps}`);
      checkSize(bytes, followUpBytes);
    } catch (error) {
      throw new Permanent(`submit: ${error.message}`, { code: code.followUpsTooLarge, cause: error });
    }
    this.#all.push(encoded);
    this.#bytes = bytes;
  }

  /** All of them. None can be added from now on. */
  end() {
    this.#ended = true;
    return this.#all;
  }
}
