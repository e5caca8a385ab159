import { checkWait } from './check.js';

export const Reason = Object.freeze({
  canceled: 'canceled',
  timeout: 'timeout',
  leaseLost: 'lease_lost',
  shutdown: 'shutdown',
});

export class Stopped extends Error {
  name = 'Stopped';

  constructor(reason) {
    super(`stopped: ${reason}`);
    this.reason = reason;
  }
}

export class Failure extends Error {
  name = 'Failure';

  constructor(message = '', { code = '', permanent = false, retryAfterMs, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.permanent = permanent;
    this.retryAfterMs = retryAfterMs === undefined ? undefined : checkWait(retryAfterMs);
  }
}

export class Permanent extends Failure {
  name = 'Permanent';

  constructor(message, { code, cause } = {}) {
    super(message, { code, cause, permanent: true });
  }
}

export class RetryAfter extends Failure {
  name = 'RetryAfter';

  constructor(delayMs, message, { code, cause } = {}) {
    super(message, { code, cause, retryAfterMs: delayMs });
  }
}

export class Snooze extends Error {
  name = 'Snooze';

  constructor(delayMs) {
    super(`snooze for ${delayMs} ms`);
    this.retryAfterMs = checkWait(delayMs);
  }
}

export class Cancel extends Error {
  name = 'Cancel';

  constructor(reason = '') {
    super(reason || 'canceled by the handler');
    this.reason = reason;
  }
}
