// The Holdfast SDK for Node.js. index.d.ts has the types, and says what each name means.
export { Cancel, Failure, Permanent, Reason, RetryAfter, Snooze, Stopped } from './lib/errors.js';
export { Handler, handler } from './lib/handler.js';
export { Job } from './lib/job.js';
export { RetryPolicy, exponentialBackoff, fixedBackoff, immediateRetry } from './lib/retry.js';
export { serve } from './lib/serve.js';
