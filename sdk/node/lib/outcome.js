import { Cancel, Failure, Reason, Snooze, Stopped } from './errors.js';
import { clean } from './json.js';
import { code, maxCode, maxMessageText, maxStack } from './limits.js';

/**
 * @typedef {object} Verdict
 * @property {boolean} [permanent]
 * @property {boolean} [snoozed]
 * @property {string} [canceled] the reason, where it is so
 * @property {number} [retryAfterMs]
 * @property {string} code
 * @property {boolean} [deliberate] whether nothing but errors of ours was thrown
 */

/**
 * What an error asks for. Wishes add up: an AggregateError asks for all that its errors do. Of two for the same
 * thing the first counts.
 *
 * @param {Verdict} [verdict]
 */
export function verdictOf(error, verdict = { code: '', deliberate: true }) {
  if (error instanceof AggregateError) {
    for (const each of error.errors) verdictOf(each, verdict);
  } else if (error instanceof Failure) {
    verdict.permanent ||= error.permanent;
    verdict.code ||= error.code;
    verdict.retryAfterMs ??= error.retryAfterMs;
  } else if (error instanceof Snooze) {
    verdict.snoozed = true;
    verdict.retryAfterMs ??= error.retryAfterMs;
  } else if (error instanceof Cancel) {
    verdict.canceled = verdict.canceled || error.reason;
  } else if (!(error instanceof Stopped)) {
    verdict.deliberate = false;
  }
  return verdict;
}

export const succeeded = (result) => ({ succeeded: { result } });

/**
 * Translates what a handler has thrown. asked is why the orchestrator asked it to stop, undefined if it did
 * not; cause why it was to stop in the first place, if it was.
 */
export function unsuccessful(error, asked, cause) {
  const verdict = verdictOf(error);
  if (asked === undefined && cause === Reason.leaseLost) {
    // Nothing else, and least of all a cancel: should the orchestrator be merely late and still own the job,
    // it is to try again.
    return failed(error, cause, { code: code.leaseLost });
  }
  if ((asked ?? cause) === Reason.timeout) {
    // Whatever the error asks for came after the attempt was stopped.
    return failed(error, Reason.timeout, { code: code.timeout });
  }
  if (asked !== undefined || verdict.canceled !== undefined) return { canceled: {} };
  if (verdict.snoozed) return { snoozed: { retryAfterMs: verdict.retryAfterMs } };
  return failed(error, cause, verdict);
}

/**
 * @param {unknown} error
 * @param {string | undefined} cause
 * @param {Verdict} verdict
 */
function failed(error, cause, { code: name, permanent = false, retryAfterMs, deliberate = true }) {
  return {
    failed: {
      permanent, retryAfterMs,
      code: clean(String(name), maxCode),
      message: clean(messageOf(error, cause), maxMessageText),
      stack: clean(deliberate ? '' : stackOf(error), maxStack),
    },
  };
}

// What it says; with its name where it is not one of ours.
function messageOf(error, cause) {
  if (cause !== undefined && error instanceof Error && error.name === 'AbortError') return new Stopped(cause).message;
  try {
    const ours = [Failure, Snooze, Cancel, Stopped].some((type) => error instanceof type);
    return ours && error.message ? error.message : String(error);
  } catch {
    return 'the handler threw something that has no words';
  }
}

function stackOf(error) {
  try {
    return error instanceof Error ? String(error.stack) : '';
  } catch {
    return '';
  }
}
