// Handlers without an orchestrator: called by tests, and refused when they are wrong.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, it } from 'node:test';
import * as holdfast from '@holdfast-jobs/holdfast';

const {
  Cancel, Failure, Job, Permanent, Reason, RetryAfter, RetryPolicy, Snooze, exponentialBackoff, fixedBackoff, handler,
} = holdfast;

const some = handler('SOME', (job) => {
  job.progress({ at: 1 });
  job.checkpoint(2);
  job.log.info('said', { n: 1 });
  job.signal.throwIfAborted();
  return [job.resume('none'), job.payload, job.attempt];
}, { timeoutMs: 120_000 });

describe('a job of a test', () => {
  it('is what the handler gets', () => {
    assert.deepEqual(some.run(new Job({ payload: { a: 1 } })), ['none', { a: 1 }, 1]);
  });

  it('has the checkpoint and the attempt that the test chooses', () => {
    assert.deepEqual(some.run(new Job({ checkpoint: 7, attempt: 3 })), [7, undefined, 3]);
  });

  it('has the results of the jobs before it', () => {
    const job = new Job({
      predecessors: [{ name: 'rows', succeeded: true, result: 3 }, { name: 'none', succeeded: false }, { name: 'large', omitted: true }],
    });
    assert.equal(job.resultOf('rows'), 3);
    assert.equal(job.resultOf('none', 7), 7);
    assert.throws(() => job.resultOf('large'), { code: 'result_omitted', permanent: true });
    assert.throws(() => job.resultOf('nobody'), { code: 'unknown_predecessor', permanent: true });
  });

  for (const early of [true, false]) {
    it(`stops for the first reason, with the signal asked for ${early ? 'before' : 'after'}`, () => {
      const stopped = new Job();
      if (early) assert.equal(stopped.signal.aborted, false);
      stopped.stop(Reason.shutdown);
      stopped.stop(Reason.canceled);
      assert.equal(stopped.canceled, true);
      assert.equal(stopped.cancelReason, 'shutdown');
      assert.throws(() => some.run(stopped), { name: 'Stopped', reason: 'shutdown' });
    });
  }

  it('counts the time down that is left', () => {
    assert.equal(new Job().timeLeftMs, Infinity);
    const left = new Job({ timeoutMs: 60_000 }).timeLeftMs;
    assert.ok(left > 0 && left <= 60_000);
    assert.equal(new Job({ timeoutMs: -1 }).timeLeftMs, 0);
  });

  it('keeps what is submitted', () => {
    const job = new Job();
    job.submit('CHILD', { n: 1 });
    job.submit('CHILD', [1], {
      key: 'k', priority: -3, runAt: new Date('2030-01-31T12:00:00Z'), delayMs: 90_000, hold: true, maxAttempts: 2, timeoutMs: 60_000,
      tags: ['t'], concurrencyKey: 'c:1', concurrencyLimit: 4, onConflict: 'queue', fairnessKey: 'f',
      expiresAt: new Date('2030-02-01T00:00:00Z'), ttlMs: 1000, uniqueForMs: 1000, uniqueWhileOpen: true, uniqueBy: ['/x'],
      callbackUrl: 'https://example.com/hook',
    });
    assert.deepEqual(job.submitted, [{ jobType: 'CHILD', payload: { n: 1 } }, {
      jobType: 'CHILD', payload: [1], idempotencyKey: 'k', priority: -3, runAt: '2030-01-31T12:00:00.000Z', delay: '90000ms', hold: true,
      maxAttempts: 2, timeout: '60000ms', tags: ['t'], concurrencyKey: 'c:1', concurrencyLimit: 4, onConflict: 'queue', fairnessKey: 'f',
      expiresAt: '2030-02-01T00:00:00.000Z', ttl: '1000ms', uniqueFor: '1000ms', uniqueWhile: 'open', uniqueBy: ['/x'],
      callbackUrl: 'https://example.com/hook',
    }]);
    assert.throws(() => job.submit(''), /no job type/);
    assert.throws(() => job.submit('CHILD', 1n), TypeError);
    assert.throws(() => job.submit('CHILD', null, { runAt: 'tomorrow' }), /is not a Date/);
    assert.throws(() => job.submit('CHILD', null, { later: true }), /the option later is unknown/);
  });

  it('refuses values that JSON cannot express', () => {
    assert.throws(() => new Job().progress(() => {}), /a function has no JSON/);
    assert.throws(() => new Job().checkpoint(1n), TypeError);
  });
});

describe('an error', () => {
  it('has its wait in milliseconds', () => {
    assert.equal(new Snooze(2000.7).retryAfterMs, 2000);
    assert.equal(new RetryAfter(-1).retryAfterMs, 0);
    assert.equal(new Failure('no').retryAfterMs, undefined);
    assert.throws(() => new Snooze('soon'), /is not a number of milliseconds/);
  });

  it('has a code and a cause', () => {
    const cause = new Error('inner');
    const error = new Permanent('no', { code: 'x', cause });
    assert.deepEqual([error.permanent, error.code, error.message, error.cause], [true, 'x', 'no', cause]);
    assert.equal(new Cancel().message, 'canceled by the handler');
  });
});

describe('a mistake is refused:', () => {
  const make = (jobType, options, run = some.run) => () => handler(jobType, run, options);
  for (const [message, mistake] of Object.entries({
    'is not a text, or empty': make(''),
    'contains a character that cannot be printed': make('A\nB'),
    'longer than 200 bytes': make('ü'.repeat(101)),
    'job type SOME: 7 is not a function': make('SOME', {}, 7),
    'timeoutMs 0 is not a number of milliseconds between': make('SOME', { timeoutMs: 0 }),
    'maxAttempts 1.5 is not an integer between 1 and 1000000': make('SOME', { maxAttempts: 1.5 }),
    'concurrency 10001': make('SOME', { concurrency: 10_001 }),
    'neither an object nor a boolean': make('SOME', { schema: [1] }),
    'the schema is longer than': make('SOME', { schema: { description: 'x'.repeat(256 << 10) } }),
    'retry is not a RetryPolicy': make('SOME', { retry: 3 }),
    'description "one\\ntwo" contains': make('SOME', { description: 'one\ntwo' }),
    'the option timeout is unknown': make('SOME', { timeout: 5 }),
    'the term key is unknown': make('SOME', { terms: { key: '/id' } }),
    'the terms name neither a concurrencyKey nor a fairnessKey': make('SOME', { terms: {} }),
    'concurrencyKey "id" is no JSON Pointer': make('SOME', { terms: { concurrencyKey: 'id', keyClass: 'a' } }),
    'fairnessKey "/~2" is no JSON Pointer': make('SOME', { terms: { fairnessKey: '/~2' } }),
    'keyClass undefined is not a text, or empty': make('SOME', { terms: { concurrencyKey: '/id' } }),
    'keyClass "a:b" has a colon': make('SOME', { terms: { concurrencyKey: '/id', keyClass: 'a:b' } }),
    'keyClass is longer than 100 characters': make('SOME', { terms: { concurrencyKey: '/id', keyClass: 'ü'.repeat(101) } }),
    'concurrencyLimit 0 is not an integer between 1 and 100000':
      make('SOME', { terms: { concurrencyKey: '/id', keyClass: 'a', concurrencyLimit: 0 } }),
    'onConflict constructor is not one of queue, cancel_newcomer, cancel_oldest':
      make('SOME', { terms: { concurrencyKey: '/id', keyClass: 'a', onConflict: 'constructor' } }),
    'need a concurrencyKey': make('SOME', { terms: { fairnessKey: '/id', concurrencyLimit: 1 } }),
    'is not one of exponential, fixed, immediate': () => new RetryPolicy({ backoff: 'linear' }),
    'the option baseMs is unknown': () => new RetryPolicy({ backoff: 'fixed', baseMs: 5 }),
    'maxDelayMs 1 is below initialDelayMs 2': () => exponentialBackoff(2, 3, 1),
    'factor 0.5 is not 1 or more': () => exponentialBackoff(1, 0.5, 2),
    'initialDelayMs 0 is not a number of milliseconds between': () => fixedBackoff(0),
  })) {
    it(message, () => {
      assert.throws(mistake, (error) => error.message.includes(message) || assert.fail(error.message));
    });
  }
});

describe('the package', () => {
  const require = createRequire(import.meta.url);
  const root = require.resolve('@holdfast-jobs/holdfast/package.json');
  const manifest = JSON.parse(readFileSync(root, 'utf8'));

  it('has types for all that it exports', () => {
    const types = readFileSync(new URL(manifest.exports['.'].types, `file://${root}`), 'utf8');
    const declared = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(holdfast).sort(), declared.sort());
  });

  it('exports nothing else', async () => {
    await assert.rejects(import('@holdfast-jobs/holdfast/lib/job.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
  });
});
