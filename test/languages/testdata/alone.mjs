// What the SDK does without an orchestrator: handlers called by tests, and what it says about mistakes.
import assert from 'node:assert/strict';
import {
  Job, Permanent, Reason, RetryAfter, RetryPolicy, Snooze, exponentialBackoff, fixedBackoff, handler,
} from '@holdfast-jobs/holdfast';

const some = handler('SOME', (job) => {
  job.progress({ at: 1 });
  job.checkpoint(2);
  job.log.info('said', { n: 1 });
  job.signal.throwIfAborted();
  return [job.resume('none'), job.payload, job.attempt];
}, { timeoutMs: 120_000 });

assert.deepEqual(some.run(new Job({ payload: { a: 1 } })), ['none', { a: 1 }, 1]);
assert.deepEqual(some.run(new Job({ checkpoint: 7, attempt: 3 })), [7, undefined, 3]);

for (const early of [true, false]) {
  const stopped = new Job();
  if (early) assert.equal(stopped.signal.aborted, false);
  stopped.stop(Reason.shutdown);
  stopped.stop(Reason.canceled);
  assert.equal(stopped.cancelled, true);
  assert.equal(stopped.cancelReason, 'shutdown');
  assert.throws(() => some.run(stopped), { name: 'Stopped', reason: 'shutdown' });
}

assert.equal(new Snooze(2000.7).retryAfterMs, 2000);
assert.equal(new RetryAfter(-1).retryAfterMs, 0);
assert.equal(new Permanent('no', { code: 'x' }).permanent, true);

const refused = (message, make) => assert.throws(make, (error) => error.message.includes(message) || assert.fail(error.message));
const make = (jobType, options, run = some.run) => () => handler(jobType, run, options);
refused('is not a text, or empty', make(''));
refused('cannot be printed', make('A\nB'));
refused('longer than 200 bytes', make('ü'.repeat(101)));
refused('job type SOME: 7 is not a function', make('SOME', {}, 7));
refused('timeoutMs 0 is not a number of milliseconds between', make('SOME', { timeoutMs: 0 }));
refused('maxAttempts 1.5 is not an integer between 1 and 1000000', make('SOME', { maxAttempts: 1.5 }));
refused('concurrency 10001', make('SOME', { concurrency: 10_001 }));
refused('neither an object nor a boolean', make('SOME', { schema: [1] }));
refused('the schema is longer than', make('SOME', { schema: { description: 'x'.repeat(256 << 10) } }));
refused('retry is not a RetryPolicy', make('SOME', { retry: 3 }));
refused('cannot be printed', make('SOME', { description: 'one\ntwo' }));
refused('the option timeout is unknown', make('SOME', { timeout: 5 }));
refused('is not one of exponential, fixed, immediate', () => new RetryPolicy({ backoff: 'linear' }));
refused('capMs 1 is below baseMs 2', () => exponentialBackoff(2, 3, 1));
refused('factor 0.5 is not 1 or more', () => exponentialBackoff(1, 0.5, 2));
refused('baseMs 0 is not a number of milliseconds between', () => fixedBackoff(0));
refused('is not a number of milliseconds', () => new Snooze('soon'));
refused('a function has no JSON', () => new Job().progress(() => {}));
console.log('done');
