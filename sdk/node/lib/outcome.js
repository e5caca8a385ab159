import { Cancel, Failure, Reason, Snooze, Stopped } from './errors.js';
import { clean } from './json.js';
import { code, maxCode, maxMessageText, maxStack } from './limits.js';

/**
 * What an error asks for. An AggregateError asks for all that its errors ask for; the first of two delays or codes
 * counts. deliberate says whether only errors of this package were thrown.
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
 * The outcome of an attempt whose handler threw the error. asked is the reason for which the orchestrator asked the
 * attempt to stop. cause is the first reason to stop, from the orchestrator or from the process itself. Both are
 * undefined for none.
 */
export function unsuccessful(error, asked, cause) {
  const verdict = verdictOf(error);
  if (asked === undefined && cause === Reason.leaseLost) {
    // Whatever the error asks for: if the orchestrator was only slow and still owns the job, it must run the job again.
    return failed(error, cause, { code: code.leaseLost });
  }
  if ((asked ?? cause) === Reason.timeout) {
    // Whatever the error asks for: it came after the attempt was stopped.
    return failed(error, Reason.timeout, { code: code.timeout });
  }
  if (asked !== undefined || verdict.canceled !== undefined) return { canceled: {} };
  if (verdict.snoozed) return { snoozed: { retryAfterMs: verdict.retryAfterMs } };
  return failed(error, cause, verdict);
}

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

// The error's text, with its name unless it is one of this package.
function messageOf(error, cause) {
  if (cause !== undefined && error instanceof Error && error.name === 'AbortError') return new Stopped(cause).message;
  try {
    const ours = [Failure, Snooze, Cancel, Stopped].some((type) => error instanceof type);
    return ours && error.message ? error.message : String(error);
  } catch {
    return 'the handler threw a value that cannot be printed';
  }
}

function stackOf(error) {
  try {
    return error instanceof Error ? String(error.stack) : '';
  } catch {
    return '';
  }
}
