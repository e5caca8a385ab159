/**
 * Holdfast handlers in Node.js.
 *
 * A handler is a function that does one job type; a handler program serves one or more of them to the
 * orchestrator that launches it.
 *
 *     import { handler, serve } from '@holdfast-jobs/holdfast';
 *
 *     const echo = handler('ECHO', async (job) => {
 *       job.log.info('echo', { text: job.payload.text });
 *       return { text: job.payload.text };
 *     });
 *
 *     serve([echo]);
 *
 * A promise that is fulfilled ends the job. A rejection is a failure that is tried again by the job type's
 * retry policy, unless it says otherwise: see Permanent, RetryAfter, Snooze, Cancel and Failure.
 *
 * An attempt that is to stop says so by job.signal, an AbortSignal whose reason is a Stopped error. A handler
 * that goes on regardless is killed with its whole process.
 */
export { Cancel, Failure, Permanent, Reason, RetryAfter, Snooze, Stopped } from './lib/errors.js';
export { Handler, handler } from './lib/handler.js';
export { Job } from './lib/job.js';
export { RetryPolicy, exponentialBackoff, fixedBackoff, immediateRetry } from './lib/retry.js';
export { serve } from './lib/serve.js';
